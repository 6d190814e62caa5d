#include "actors/engine/loop/loop_state.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status LoopState::CheckAttachOptimizer(bool under_way) const {
  if (!under_way) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "an optimizer is attached before the first backward of a step: make it "
      "before, or discard the gradients with ZeroGrad()");
}

absl::Status LoopState::CheckSetHook(bool rounds, bool under_way) const {
  if (rounds) {
    return absl::InvalidArgumentError(
        "RegisterCommHook(): a hook takes the place of reductions in another "
        "dtype; leave out reduction_dtype, or the hook");
  }
  if (!under_way) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a communication hook is registered before the first backward of a "
      "step: register it before, or discard the gradients with ZeroGrad()");
}

absl::Status LoopState::CheckStepInBackward(const nn::Optimizer* optimizer,
                                            bool under_way) const {
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
  if (!under_way) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "StepInBackward() comes before the first backward of a step; call it "
      "before, or discard the gradients with ZeroGrad()");
}

absl::Status LoopState::CheckUpdatingBackward(bool synced) const {
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

absl::Status LoopState::CheckBackward(bool has_loss, bool synced) const {
  TROUPE_RETURN_IF_ERROR(CheckUpdatingBackward(synced));
  if (!exact_mean_) return absl::OkStatus();
  if (!has_loss) {
    return absl::InvalidArgumentError(
        "exact_mean divides by the counts of losses, and this backward begins "
        "at a tensor that has none; use a loss of nn/ops/loss.h");
  }
  if (!reducing_ || !synced) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "exact_mean adds up over the ranks once a step, and a backward of this "
      "step has done so; run all backwards but the last one under NoSync()");
}

absl::Status LoopState::CheckStep(const nn::Optimizer* optimizer,
                                  bool under_way) const {
  if (optimizer == nullptr) {
    return absl::FailedPreconditionError(
        "Step() without an optimizer; make one for this model first");
  }
  if (synced_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      reducing_ || under_way
          ? "Step() after a backward under NoSync(): its gradients are not "
            "reduced over the ranks; run the last backward without it"
          : "Step() without gradients; call Backward() first");
}

absl::Status LoopState::CheckZeroGrad(bool under_way) const {
  if (!steps_in_backward_ || !under_way) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "ZeroGrad() after a backward that has updated the parameters "
      "(StepInBackward()): there is no gradient left to discard; call Step() "
      "first, which ends the step");
}

absl::Status LoopState::CheckOutsideHooks() const {
  const bool own = hook_ != nullptr && hook_->running();
  if (!own && !busy_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a communication hook may not run backwards, steps or ZeroGrad() of ",
      own ? "its model" : "another model that is in the midst of one",
      ", nor wait for its gradients; reduce the bucket that it is given, and "
      "leave the rest to the loop"));
}

}  // namespace troupe::actors
