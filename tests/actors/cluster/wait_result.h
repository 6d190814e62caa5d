// The result of Job::Wait() in one process of a simulated cluster: the outcome
// of the job, or of a process that could not start its part, the reason.
//
//   WaitResult result;
//   result.AddOutcome(outcome);      // by the agent; the first counts
//   result.FailStart(status);        // instead, or before
//   result.Return();                 // Wait() returns
//   result.returned();               // the job's outcome
//
// Threads: one.

#ifndef TESTS_ACTORS_CLUSTER_WAIT_RESULT_H_
#define TESTS_ACTORS_CLUSTER_WAIT_RESULT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/setup/job_report.h"
#include "base/check.h"

namespace troupe::actors {

class WaitResult {
 public:
  // Adds a report of the job's outcome.
  void AddOutcome(const absl::StatusOr<JobResult>& outcome) {
    ++outcomes_;
    if (!outcome_) outcome_ = outcome;
  }
  bool has_outcome() const { return outcome_.has_value(); }
  // Returns the number of reports of the outcome.
  int outcomes() const { return outcomes_; }

  // Notes why the process could not start its part of the job.
  void FailStart(const absl::Status& status) { start_ = status; }

  // Makes Wait() return `result`, unless it has returned.
  void Return(const absl::StatusOr<JobResult>& result) {
    if (!returned_) returned_ = result;
  }
  // Makes Wait() return the outcome of the job. If the process could not start,
  // this is the failure of the job, or else its own reason. Stands for
  // ClusterJob::VerdictOr().
  void Return() {
    if (!start_.ok() && (!outcome_ || outcome_->ok())) {
      Return(start_);
    } else {
      TROUPE_CHECK(outcome_.has_value(),
                   "Wait() returns before the job has ended");
      Return(*outcome_);
    }
  }
  // Returns what Wait() has returned; none: it has not.
  const std::optional<absl::StatusOr<JobResult>>& returned() const {
    return returned_;
  }

 private:
  std::optional<absl::StatusOr<JobResult>> outcome_, returned_;
  absl::Status start_;
  int outcomes_ = 0;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_WAIT_RESULT_H_
