// The refusals of a LoopEngine, and StepInBackward(), which consists of them.

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/engine/loop/bucket_hook.h"
#include "actors/engine/loop/loop_engine.h"

namespace troupe::actors {

absl::Status LoopEngine::StepInBackward() {
  const nn::Optimizer* const optimizer = parameters_->optimizer();
  if (optimizer == nullptr) {
    return absl::FailedPreconditionError(
        "StepInBackward() without an optimizer; make one for this model first");
  }
  if (optimizer->NeedsAllBuckets()) {
    return absl::InvalidArgumentError(
        "StepInBackward() updates a bucket before the next one is reduced, and "
        "this optimizer needs the norm of all gradients first; leave out "
        "clipping, the skipping of steps and layerwise rates, or call Step() "
        "after the backward alone");
  }
  if (dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "StepInBackward() comes before the first backward of a step; call it "
        "before, or discard the gradients with ZeroGrad()");
  }
  steps_in_backward_ = true;
  // Neither a sum over ranks nor a count of the loss comes between a gradient
  // and its update.
  plan_.fuse_updates =
      plan_.mesh.size() == 1 && hook_ == nullptr && !setup_.exact_mean;
  return absl::OkStatus();
}

absl::Status LoopEngine::CheckStepInBackward(bool synced) const {
  if (!steps_in_backward_) return absl::OkStatus();
  if (!synced) {
    return absl::FailedPreconditionError(
        "a backward under NoSync() in a loop with StepInBackward(): gradients "
        "are used up as soon as they are reduced, and cannot add up; leave out "
        "one of them");
  }
  if (!reducing_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a second backward in a step with StepInBackward(): the first one has "
      "updated the parameters already; call Step() between them");
}

absl::Status LoopEngine::CheckOutsideHooks() const {
  const bool own = hook_ != nullptr && hook_->running();
  if (!own && !busy_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a communication hook may not run backwards, steps or ZeroGrad() of ",
      own ? "its model" : "another model that is in the midst of one",
      ", nor wait for its gradients; reduce the bucket that it is given, and "
      "leave the rest to the loop"));
}

absl::Status LoopEngine::CheckBackward(const LoopBackward& backward,
                                       bool synced) const {
  TROUPE_RETURN_IF_ERROR(CheckStepInBackward(synced));
  if (!setup_.exact_mean) return absl::OkStatus();
  if (backward.seed.defined()) {
    return absl::InvalidArgumentError(
        "exact_mean divides by the counts of losses, and this backward begins "
        "at a tensor that has none; use a loss of nn/ops/loss.h");
  }
  if (!reducing_ || !synced) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "exact_mean adds up over the ranks once a step, and a backward of this "
      "step has done so; run all backwards but the last one under NoSync()");
}

}  // namespace troupe::actors
