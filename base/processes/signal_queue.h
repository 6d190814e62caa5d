// Signals as a descriptor, for a loop that polls several descriptors.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<SignalQueue> signals,
//                           SignalQueue::Start({SIGINT, SIGTERM}));
//   pollfd entry = {signals->fd(), POLLIN, 0};
//   poll(&entry, 1, /*timeout=*/-1);
//   for (int signal : signals->Take()) Handle(signal);
//
// Until the queue is destroyed, the signals have no other effect on this
// process. A SIGHUP that was ignored (nohup) stays ignored. Threads: the main
// one, before others are started.

#ifndef BASE_PROCESSES_SIGNAL_QUEUE_H_
#define BASE_PROCESSES_SIGNAL_QUEUE_H_

#include <signal.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::base {

class SignalQueue {
 public:
  static absl::StatusOr<std::unique_ptr<SignalQueue>> Start(
      const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_; }
  // Returns the signals since the last call. Several of one kind may be merged.
  std::vector<int> Take();

 private:
  SignalQueue(int fd, const sigset_t& before) : fd_(fd), before_(before) {}

  const int fd_;
  const sigset_t before_;  // signals blocked before
};

}  // namespace troupe::base

#endif  // BASE_PROCESSES_SIGNAL_QUEUE_H_
