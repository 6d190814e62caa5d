// A function that others call from their threads until its owner takes it back.
//
//   Wakeup wakeup;
//   wakeup.Set([&] { awake = true; });
//   wakeup.Call();                      // from any thread
//   wakeup.Set(nullptr);                // none is running any more
//
// No lock is held during a call: what it does last may drop the last handle of
// the owner, who then calls Set() from within. Such a Set() waits for the other
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
  // `function` may be null. Waits until no other thread runs the one before.
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
