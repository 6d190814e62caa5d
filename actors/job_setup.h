// Everything of a job that is made before its first actor: the plan, the place
// in the data, and the contexts of the process and of its ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(ProcessContextPtr process,
//                           SetUpJob(spec, observer));
//   SupervisorActor supervisor = SpawnCrew(system, process);
//
// Errors: kInvalidArgument that names the field of the spec, or the sizes that
// do not fit; the reader's error where a checkpoint to resume from cannot be
// used.

#ifndef ACTORS_JOB_SETUP_H_
#define ACTORS_JOB_SETUP_H_

#include "absl/status/statusor.h"
#include "actors/process_context.h"

namespace troupe::actors {

// Written into checkpoints.
inline constexpr char kTroupeVersion[] = "0.1";

// `observer` and `hooks` may be null; they outlive the job. All ranks of the
// job live in this process.
absl::StatusOr<ProcessContextPtr> SetUpJob(const JobSpec& spec,
                                           JobObserver* observer,
                                           const TestHooks* hooks = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_JOB_SETUP_H_
