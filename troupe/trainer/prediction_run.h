// Computes the outputs of a checkpoint's model for a data set, by the replicas
// of a Trainer's mesh that are in this process.
//
//   TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint at,
//                           CheckpointAt(options, /*ckpt_path=*/"best"));
//   TROUPE_RETURN_IF_ERROR(RunPredictions(
//       options, task, {test, /*batch_size=*/32}, at,
//       [](const PredictedBatch& batch) { batch.output.shape(); }));
//
// Replica r of n has samples r, r + n, r + 2 n, ..., each once, in batches of
// FitData::batch_size, of which the last may be smaller: as
// UnrepeatedDistributedSampler has it in Lightning. Each replica is a session
// (actors/inference/inference_session.h), and all compute at the same time. The
// replicas are divided among the processes; all stages of one are in one
// process.
//
// Errors: kInvalidArgument that names the option (base/field_error.h); those of
// InferenceSession. Threads: the caller's reads the samples, and visits the
// outputs in the order of batches, then replicas.

#ifndef TROUPE_TRAINER_PREDICTION_RUN_H_
#define TROUPE_TRAINER_PREDICTION_RUN_H_

#include <functional>

#include "absl/status/status.h"
#include "actors/checkpoint/checkpoint.h"
#include "troupe/trainer/predictions.h"
#include "troupe/trainer_options.h"

namespace troupe {

absl::Status RunPredictions(
    const TrainerOptions& options, const Task& task, const FitData& data,
    const actors::Checkpoint& at,
    const std::function<void(const PredictedBatch&)>& visit);

}  // namespace troupe

#endif  // TROUPE_TRAINER_PREDICTION_RUN_H_
