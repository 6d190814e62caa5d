#include "tools/trainer/terminal/stop_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

// Byte that ends the thread; other bytes in the pipe are numbers of signals.
constexpr char kEnd = 0;

std::atomic<int> signal_pipe{-1};
std::atomic<std::int64_t (*)()> signal_clock_ms{nullptr};
// When the first signal came, or kNotAsked.
constexpr std::int64_t kNotAsked = -1;
std::atomic<std::int64_t> stop_asked_ms{kNotAsked};

void WriteByte(int fd, char byte) {
  // Cannot block: at most two bytes are ever written to the pipe.
  [[maybe_unused]] const ssize_t written = write(fd, &byte, 1);
}

void OnSignal(int signal) {
  const int error = errno;
  const std::int64_t now_ms = signal_clock_ms.load()();
  std::int64_t first_ms = kNotAsked;
  if (stop_asked_ms.compare_exchange_strong(first_ms, now_ms)) {
    WriteByte(signal_pipe.load(), static_cast<char>(signal));
  } else if (signal == SIGINT && now_ms - first_ms > StopSignals::kTogetherMs) {
    _exit(kExitAtOnce);
  }
  errno = error;
}

// Installs the handler and returns the previous action.
struct sigaction Handle(int signal) {
  struct sigaction before = {};
  sigaction(signal, nullptr, &before);
  if (signal == SIGHUP && before.sa_handler == SIG_IGN) return before;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
  return before;
}

void WaitFor(int read_end, const std::function<void(int)>& on_first) {
  char byte = kEnd;
  ssize_t got;
  do {
    got = read(read_end, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && byte != kEnd) on_first(byte);
}

absl::Status Refused(const std::string& why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot wait for Ctrl-C: ", why,
      "; raise the system's limits on processes (ulimit -u, or the pids limit "
      "of the container) and on open files (ulimit -n)"));
}

}  // namespace

std::int64_t SteadyMilliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);  // signal handlers may call it
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Start(
    std::function<void(int)> on_first, std::int64_t (*clock_ms)()) {
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
  stop_asked_ms = kNotAsked;
  signal_clock_ms = clock_ms;
  signal_pipe = ends[1];
  return absl::WrapUnique(new StopSignals(ends[0], ends[1], std::move(thread)));
}

StopSignals::StopSignals(int read_end, int write_end, std::thread thread)
    : read_end_(read_end), write_end_(write_end), thread_(std::move(thread)) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    before_[i] = Handle(kSignals[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  WriteByte(write_end_, kEnd);
  thread_.join();
  signal_pipe = -1;
  close(read_end_);
  close(write_end_);
}

}  // namespace troupe::tools
