// The job by which a Trainer evaluates a checkpoint: it has no training
// samples, so that it evaluates and ends.
//
//   TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint at,
//                           CheckpointAt(options, /*ckpt_path=*/"best"));
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           EvaluationJob(options, task, {test, 32}, at));
//
// Errors: kInvalidArgument that names the option (base/field_error.h).

#ifndef TROUPE_TRAINER_EVALUATION_JOB_H_
#define TROUPE_TRAINER_EVALUATION_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/spec/job_spec.h"
#include "troupe/trainer_options.h"

namespace troupe {

// Opens a checkpoint: a path, that of a folder, "last", "best", or if it is
// empty, the best of the ModelCheckpoint, or its newest one if it has no
// monitor.
//   kInvalidArgument: no ModelCheckpoint has a folder.
//   kNotFound: there is no checkpoint.
absl::StatusOr<actors::Checkpoint> CheckpointAt(const TrainerOptions& options,
                                                std::string ckpt_path);

// Returns the job that evaluates all samples of `data`, or those that
// limit_val_batches lets through. It trains and saves nothing.
absl::StatusOr<actors::JobSpec> EvaluationJob(const TrainerOptions& options,
                                              const Task& task,
                                              const FitData& data,
                                              const actors::Checkpoint& at);

}  // namespace troupe

#endif  // TROUPE_TRAINER_EVALUATION_JOB_H_
