#include "tools/trainer/stop_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

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

void WaitFor(int read_end, const std::function<void()>& on_first) {
  char byte = kEnd;
  ssize_t got;
  do {
    got = read(read_end, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && byte == kSignal) on_first();
}

absl::Status Refused(const std::string& why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot wait for Ctrl-C: ", why,
      "; raise the system's limits on processes (ulimit -u, or the pids limit "
      "of the container) and on open files (ulimit -n)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Start(
    std::function<void()> on_first) {
  TROUPE_CHECK(signal_pipe.load() == -1, "one StopSignals at a time");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Refused(std::generic_category().message(errno));
  }
  std::thread thread;
  try {
    thread = std::thread(WaitFor, ends[0], std::move(on_first));
  } catch (const std::system_error& error) {
    close(ends[0]);
    close(ends[1]);
    return Refused(error.code().message());
  }
  signals_seen = 0;
  signal_pipe = ends[1];
  Handle(OnSignal);
  return absl::WrapUnique(new StopSignals(ends[0], ends[1], std::move(thread)));
}

StopSignals::StopSignals(int read_end, int write_end, std::thread thread)
    : read_end_(read_end), write_end_(write_end), thread_(std::move(thread)) {}

StopSignals::~StopSignals() {
  Handle(SIG_DFL);
  WriteByte(write_end_, kEnd);
  thread_.join();
  signal_pipe = -1;
  close(read_end_);
  close(write_end_);
}

}  // namespace troupe::tools
