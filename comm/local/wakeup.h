// A callback that other threads call until its owner replaces or removes it.
//
//   Wakeup wakeup;
//   wakeup.Set([&] { awake = true; });
//   wakeup.Call();                      // from any thread
//   wakeup.Set(nullptr);                // no call is running any more
//
// No lock is held during a call: its last action may drop the last reference to
// the owner, which then calls Set() from within. This Set() waits for the other
// calls, not for its own.
//
// Threads: any.

#ifndef COMM_LOCAL_WAKEUP_H_
#define COMM_LOCAL_WAKEUP_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe::comm::internal {

class Wakeup {
 public:
  // Replaces the function, which may be null. Waits until no other thread runs
  // the old one.
  void Set(std::function<void()> function) ABSL_LOCKS_EXCLUDED(mutex_);
  void Call() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Running;

  absl::Mutex mutex_;
  std::shared_ptr<const std::function<void()>> function_
      ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_WAKEUP_H_
