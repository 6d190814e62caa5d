// Everything of a job that is made before its first actor: the plan, the place
// in the data, and the contexts of the process and of its ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(JobSetup setup, SetUpJob(spec, observer));
//   SupervisorActor supervisor =
//       SpawnCrew(system, setup.process, std::move(setup.checkpoint));
//
// Errors: kInvalidArgument that names the field of the spec, or the sizes that
// do not fit; the reader's error where a checkpoint to resume from cannot be
// used.

#ifndef ACTORS_SETUP_JOB_SETUP_H_
#define ACTORS_SETUP_JOB_SETUP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/setup/process_context.h"

namespace troupe::actors {

// Written into checkpoints.
inline constexpr char kTroupeVersion[] = "0.1";

// What process 0 has decided for all processes of the job.
struct Decision {
  std::shared_ptr<const pipeline::Plan> plan;
  std::string resume_path;  // empty: fresh
};

struct JobSetup {
  std::shared_ptr<ProcessContext> process;
  // What a resumed job starts from; null: fresh. For SpawnCrew() alone: an open
  // file takes space on the disk also when it has been removed.
  std::shared_ptr<const Checkpoint> checkpoint;
};

// All but the ranks. `decided`: null in the process that decides.
absl::StatusOr<JobSetup> PrepareJob(const JobSpec& spec, JobObserver* observer,
                                    const TestHooks* hooks = nullptr,
                                    const Decision* decided = nullptr);

// `observer` and `hooks` may be null; they outlive the job. All ranks of the
// job live in this process.
absl::StatusOr<JobSetup> SetUpJob(const JobSpec& spec, JobObserver* observer,
                                  const TestHooks* hooks = nullptr);

// Calls the observer's OnStart, if there is one; notes where there is no step.
void AnnounceJob(const ProcessContext& process, JobObserver* observer);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_JOB_SETUP_H_
