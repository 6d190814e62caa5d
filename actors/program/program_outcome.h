// The end of a program: when all ranks have ended, with the first failure.
//
//   ProgramOutcome outcome(/*ranks=*/2);
//   outcome.Fail(1, status);              // before it tells its peers
//   outcome.End(0), outcome.End(1);
//   absl::Status status = outcome.Wait();
//
// Peers of a rank that has failed fail, too: a rank reports its failure before
// it aborts the groups, so that the first report is that of the cause.
//
// Threads: any.

#ifndef ACTORS_PROGRAM_PROGRAM_OUTCOME_H_
#define ACTORS_PROGRAM_PROGRAM_OUTCOME_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace troupe::actors {

class ProgramOutcome {
 public:
  explicit ProgramOutcome(int ranks) : running_(ranks) {}

  // Returns false if a failure has been reported before.
  bool Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return false;
    status_ = why;
    return true;
  }
  // Records that one more rank has ended.
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    --running_;
  }
  bool has_ended() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return running_ == 0;
  }
  absl::Status Wait() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](const int* running) { return *running == 0; }, &running_));
    return status_;
  }

 private:
  mutable absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_OUTCOME_H_
