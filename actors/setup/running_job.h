// Interface of a job under way, in one process or several, which Job
// (actors/job.h) holds.
//
//   absl::StatusOr<std::unique_ptr<RunningJob>> running =
//       StartClusterJob(spec, observer);  // actors/cluster/cluster_job.h

#ifndef ACTORS_SETUP_RUNNING_JOB_H_
#define ACTORS_SETUP_RUNNING_JOB_H_

#include "absl/status/statusor.h"
#include "actors/setup/job_report.h"

namespace troupe::actors {

class RunningJob {
 public:
  // Ends the job if it has not ended, and waits for its threads.
  virtual ~RunningJob() = default;
  virtual void RequestStop() = 0;
  virtual absl::StatusOr<JobResult> Wait() = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RUNNING_JOB_H_
