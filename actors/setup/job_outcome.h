// A future of the job's result: set once, and waited for.
//
//   JobOutcome outcome;
//   outcome.Set(result);                      // in the job's last actor
//   absl::StatusOr<JobResult> result = outcome.Wait();
//
// Threads: any.

#ifndef ACTORS_SETUP_JOB_OUTCOME_H_
#define ACTORS_SETUP_JOB_OUTCOME_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/setup/job_report.h"

namespace troupe::actors {

class JobOutcome {
 public:
  using Listener = std::function<void(const absl::StatusOr<JobResult>&)>;

  // Sets the function that Set() calls, once, before Wait() returns. To be
  // called before the job begins.
  void OnSet(Listener listener) {
    absl::MutexLock lock(&mutex_);
    listener_ = std::move(listener);
  }
  // Sets the result. Calls after the first are ignored.
  void Set(absl::StatusOr<JobResult> result) {
    absl::MutexLock lock(&mutex_);
    if (done_.HasBeenNotified()) return;
    result_ = std::move(result);
    if (listener_) listener_(result_);
    done_.Notify();
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }
  // Waits at most `timeout`; returns whether the result has been set.
  bool WaitFor(absl::Duration timeout) const {
    return done_.WaitForNotificationWithTimeout(timeout);
  }
  absl::StatusOr<JobResult> Wait() {
    done_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return result_;
  }

 private:
  absl::Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  absl::Notification done_;
  absl::StatusOr<JobResult> result_ ABSL_GUARDED_BY(mutex_) =
      absl::UnknownError("the job has not ended");
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_JOB_OUTCOME_H_
