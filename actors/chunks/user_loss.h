// The loss of a micro-batch by the code of the job's user: the loss function on
// what the model gives, or a training step that calls the model itself
// (actors/spec/training_step.h).
//
//   if (HasOwnStep(spec, StepKind::kTrain)) {
//     stats = LossByStep(ctx, spec, *module, *batches.Whole(m));
//   } else {
//     stats = LossOf(ctx, spec, *module, (*module)(ctx, x),
//                    *batches.Targets(m));
//   }
//
// Errors (sticky in ctx): those of the user's code and its exceptions, and
// kInvalidArgument if it returns no statistics of a loss.
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_USER_LOSS_H_
#define ACTORS_CHUNKS_USER_LOSS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "actors/chunks/step/step_types.h"
#include "actors/spec/job_spec.h"
#include "data/batch.h"
#include "nn/autograd/context.h"
#include "nn/modules/module.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Whether the forwards of steps of this kind are JobSpec::training_step.
bool HasOwnStep(const JobSpec& spec, StepKind kind);

// Returns the part of the model that a rank has of stage `stage`. The last
// stage gives its logits split among the ranks along tp, if the loss is
// declared to take them so; for a training step of one's own, whole ones.
//   Errors of pipeline::BuildStage().
absl::StatusOr<std::unique_ptr<nn::Module>> BuildChunk(
    const JobSpec& spec, const pipeline::Plan& plan, int stage, int rank);

// Return the statistics of the loss, f64[3] (nn/ops/loss.h). `last` is the last
// stage, from BuildChunk().
nn::Tensor LossOf(nn::Context& ctx, const JobSpec& spec, nn::Module& last,
                  nn::Tensor output, const nn::Tensor& target);
nn::Tensor LossByStep(nn::Context& ctx, const JobSpec& spec, nn::Module& model,
                      const data::Batch& batch);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_USER_LOSS_H_
