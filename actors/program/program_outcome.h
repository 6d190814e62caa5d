// The end of a program: when all ranks have ended, with the first failure.
//
//   ProgramOutcome outcome(/*ranks=*/2);
//   outcome.Fail(status);                 // before it tells its peers
//   outcome.End(0), outcome.End(1);
//   if (outcome.WaitFor(absl::Seconds(1))) return outcome.status();
//
// Peers of a rank that has failed fail, too: a rank reports its failure before
// it aborts the groups, so that the first report is that of the cause.
//
// Threads: any.

#ifndef ACTORS_PROGRAM_PROGRAM_OUTCOME_H_
#define ACTORS_PROGRAM_PROGRAM_OUTCOME_H_

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe::actors {

class ProgramOutcome {
 public:
  explicit ProgramOutcome(int ranks) : ended_(ranks) {}

  // Keeps the first failure.
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    status_.Update(why);
  }
  // Records that a rank has ended. May be repeated.
  void End(int rank) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ended_[rank] = true;
    all_ = std::find(ended_.begin(), ended_.end(), false) == ended_.end();
  }
  bool has_ended() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return all_;
  }
  std::vector<bool> ended() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ended_;
  }
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return status_;
  }
  // Waits until all ranks have ended, at most `timeout`. Returns whether they
  // have.
  bool WaitFor(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&all_), timeout);
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<bool> ended_ ABSL_GUARDED_BY(mutex_);
  bool all_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_OUTCOME_H_
