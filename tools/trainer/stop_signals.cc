#include "tools/trainer/stop_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "nn/tensor/check.h"

namespace troupe::tools {
namespace {

constexpr int kSecondSignalExit = 130;
constexpr char kSignal = 's';
constexpr char kEnd = 'e';

std::atomic<int> signal_pipe{-1};
std::atomic<int> signals_seen{0};

void WriteByte(int fd, char byte) {
  // A pipe takes a byte, or is full of the same.
  [[maybe_unused]] const ssize_t written = write(fd, &byte, 1);
}

void OnSignal(int) {
  const int error = errno;
  if (signals_seen.fetch_add(1) > 0) _exit(kSecondSignalExit);
  WriteByte(signal_pipe.load(), kSignal);
  errno = error;
}

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(std::function<void()> on_first) {
  TROUPE_CHECK(signal_pipe.load() == -1, "one StopSignals at a time");
  TROUPE_CHECK(pipe2(pipe_, O_CLOEXEC) == 0, "a process has two more files");
  signals_seen = 0;
  signal_pipe = pipe_[1];
  thread_ = std::thread([fd = pipe_[0], on_first = std::move(on_first)] {
    char byte = kEnd;
    ssize_t got;
    do {
      got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1 && byte == kSignal) on_first();
  });
  Handle(OnSignal);
}

StopSignals::~StopSignals() {
  Handle(SIG_DFL);
  WriteByte(pipe_[1], kEnd);
  thread_.join();
  signal_pipe = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

}  // namespace troupe::tools
