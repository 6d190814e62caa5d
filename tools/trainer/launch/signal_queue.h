// Signals as something to read, beside what else a loop waits for.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<SignalQueue> signals,
//                           SignalQueue::Start({SIGINT, SIGTERM}));
//   pollfd entry = {signals->fd(), POLLIN, 0};
//   poll(&entry, 1, /*timeout=*/-1);
//   for (int signal : signals->Take()) Handle(signal);
//
// Until it is destroyed they do nothing else to this process. SIGHUP is left
// alone where it was ignored (nohup). Threads: the main one, before others are
// started.

#ifndef TOOLS_TRAINER_LAUNCH_SIGNAL_QUEUE_H_
#define TOOLS_TRAINER_LAUNCH_SIGNAL_QUEUE_H_

#include <signal.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::tools {

class SignalQueue {
 public:
  static absl::StatusOr<std::unique_ptr<SignalQueue>> Start(
      const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_; }
  // Those that have come. Several of one kind may be one.
  std::vector<int> Take();

 private:
  SignalQueue(int fd, const sigset_t& before) : fd_(fd), before_(before) {}

  const int fd_;
  const sigset_t before_;  // what was blocked
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_SIGNAL_QUEUE_H_
