// A job whose ranks live in several processes, as one of them sees it. Users
// start it by Job::Start() with JobSpec::cluster set; this is what that does.
//
//   absl::StatusOr<std::unique_ptr<RunningJob>> job =
//       StartClusterJob(spec, observer);
//
// In this order, in every process: the control plane (control_plane.h);
// joining, by which all agree and learn the plan of process 0 (join_round.h);
// links to the others (comm/fabric.h); ranks and their actors. Process 0 has
// coordinator and supervisor, each other an agent. The supervisor's protocol is
// what it is in one process.
//
// Errors: as Job::Start(); kFailedPrecondition where the processes do not
// belong together, kUnavailable where one is lost. All processes report the
// same one.

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
