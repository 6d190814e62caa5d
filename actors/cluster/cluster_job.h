// A job whose ranks live in several processes: the part of one process. Users
// call Job::Start() with JobSpec::cluster set, which calls StartClusterJob().
//
//   absl::StatusOr<std::unique_ptr<RunningJob>> job =
//       StartClusterJob(spec, observer);
//
// Every process, in this order, opens the control plane (control_plane.h);
// joins, which checks that all agree and returns the plan of process 0
// (join_round.h); connects to the others (comm/fabric.h); spawns its ranks and
// their actors. Process 0 has the coordinator and the supervisor, each other
// process an agent. The supervisor's protocol is the same as in one process.
//
// Errors: the same as Job::Start(); kFailedPrecondition if the processes do not
// agree, kUnavailable if one is lost. All processes return the same error.

#ifndef ACTORS_CLUSTER_CLUSTER_JOB_H_
#define ACTORS_CLUSTER_CLUSTER_JOB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "actors/setup/job_report.h"
#include "actors/setup/running_job.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<RunningJob>> StartClusterJob(
    const JobSpec& spec, JobObserver* observer);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CLUSTER_JOB_H_
