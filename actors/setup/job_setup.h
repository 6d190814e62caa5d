// Makes everything that a job needs before its first actor: the plan, the place
// in the data, and the contexts of the process and of its ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(JobSetup setup, SetUpJob(spec, observer));
//   SupervisorActor supervisor =
//       SpawnCrew(system, setup.process, std::move(setup.checkpoint));
//
// Errors: kInvalidArgument that names the field of the spec, or the sizes that
// do not fit; the reader's error if a checkpoint to resume from cannot be used.

#ifndef ACTORS_SETUP_JOB_SETUP_H_
#define ACTORS_SETUP_JOB_SETUP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/setup/process_context.h"

namespace troupe::actors {

// Version of this program, which checkpoints record.
inline constexpr char kTroupeVersion[] = "0.1";

// Decision of process 0 for all processes of the job.
struct Decision {
  std::shared_ptr<const pipeline::Plan> plan;
  std::string resume_path;  // empty: fresh
};

struct JobSetup {
  std::shared_ptr<ProcessContext> process;
  // Checkpoint that the job is resumed from; null: fresh. To be moved into
  // SpawnCrew(): as long as the files are open, they take space on the disk,
  // also after their removal.
  std::shared_ptr<const Checkpoint> checkpoint;
};

// Makes all but the contexts of the ranks. `decided`: null in the process that
// decides.
absl::StatusOr<JobSetup> PrepareJob(const JobSpec& spec, JobObserver* observer,
                                    const TestHooks* hooks = nullptr,
                                    const Decision* decided = nullptr);

// Checks in a process other than 0 that its folder of checkpoints has the
// `mark` that process 0 has put into its own. Needs the roster. If no rank of
// this process is the first of its stage, it sets `has_folder` to false and
// calls `warn`, which may be null, instead: others can write what these ranks
// send them.
//   kFailedPrecondition: it is another folder, and a rank here has to write.
absl::Status CheckFolder(ProcessContext& process, const std::string& mark,
                         const std::function<void(const std::string&)>& warn);

// Makes all for a job whose ranks are all in this process. `observer` and
// `hooks` may be null; they outlive the job.
absl::StatusOr<JobSetup> SetUpJob(const JobSpec& spec, JobObserver* observer,
                                  const TestHooks* hooks = nullptr);

// Calls the observer's OnStart(), if there is an observer. Calls JobSpec::note
// if the job has no steps to train.
void AnnounceJob(const ProcessContext& process, JobObserver* observer);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_JOB_SETUP_H_
