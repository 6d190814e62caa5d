// The loss of a micro-batch by the code of the job's user: the loss function on
// what the model gives, or a training step that calls the model itself
// (actors/spec/training_step.h).
//
//   if (HasOwnStep(spec, StepKind::kTrain)) {
//     stats = LossByStep(ctx, spec, *module, *batches.Whole(m));
//   } else {
//     stats = LossOf(ctx, spec, (*module)(ctx, x), *batches.Targets(m));
//   }
//
// Errors (sticky in ctx): those of the user's code and its exceptions, and
// kInvalidArgument if it returns no statistics of a loss.
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_USER_LOSS_H_
#define ACTORS_CHUNKS_USER_LOSS_H_

#include "actors/chunks/step/step_types.h"
#include "actors/spec/job_spec.h"
#include "data/batch.h"
#include "nn/autograd/context.h"
#include "nn/modules/module.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// Whether the forwards of steps of this kind are JobSpec::training_step.
bool HasOwnStep(const JobSpec& spec, StepKind kind);

// Return the statistics of the loss, f64[3] (nn/ops/loss.h).
nn::Tensor LossOf(nn::Context& ctx, const JobSpec& spec, nn::Tensor output,
                  const nn::Tensor& target);
nn::Tensor LossByStep(nn::Context& ctx, const JobSpec& spec, nn::Module& model,
                      const data::Batch& batch);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_USER_LOSS_H_
