#include "base/processes/signal_queue.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <system_error>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe::base {

absl::StatusOr<std::unique_ptr<SignalQueue>> SignalQueue::Start(
    const std::vector<int>& signals) {
  sigset_t taken, before;
  sigemptyset(&taken);
  for (int signal : signals) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (signal == SIGHUP && action.sa_handler == SIG_IGN) continue;
    sigaddset(&taken, signal);
  }
  const int fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot wait for signals: ", std::generic_category().message(errno),
        "; raise the limit on open files (ulimit -n)"));
  }
  sigprocmask(SIG_BLOCK, &taken, &before);
  return absl::WrapUnique(new SignalQueue(fd, before));
}

SignalQueue::~SignalQueue() {
  close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> SignalQueue::Take() {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) == sizeof(info)) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

}  // namespace troupe::base
