// Turns the options of a Trainer into the job that it runs. Plain data: nothing
// starts, and no callback is called.
//
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           TrainerJob(options, task, {train, 32}, {val}));
//   spec.plan.global_batch_size;  // batch_size x replicas x accumulated ones
//
// Errors: kInvalidArgument that names the option (base/field_error.h).

#ifndef TROUPE_TRAINER_TRAINER_JOB_H_
#define TROUPE_TRAINER_TRAINER_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "troupe/trainer_options.h"

namespace troupe {

absl::StatusOr<actors::JobSpec> TrainerJob(const TrainerOptions& options,
                                           const Task& task,
                                           const FitData& train,
                                           const FitData& val);

// Returns the job that evaluates all of `data`, which has samples, and trains
// nothing.
absl::StatusOr<actors::JobSpec> EvaluatingJob(const TrainerOptions& options,
                                              const Task& task,
                                              const FitData& data);

// Returns the number of steps in an epoch of the job.
std::int64_t StepsPerEpoch(const actors::JobSpec& spec);

// Sets the checkpoint that TrainerOptions::ckpt_path says; the folder of a
// ModelCheckpoint is set before.
//   kInvalidArgument: there is no such folder.
absl::Status SetResume(const std::string& ckpt_path, actors::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_TRAINER_TRAINER_JOB_H_
