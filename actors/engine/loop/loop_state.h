// Where a hand-written loop stands in its step, and which calls it refuses
// there: the order of ZeroGrad(), Backward() and Step(), and of the calls that
// set up the engine (loop_engine.h).
//
//   LoopState state(/*exact_mean=*/false);
//   TROUPE_RETURN_IF_ERROR(state.CheckBackward(/*has_loss=*/true,
//                                              /*synced=*/true));
//   const int number = state.BeginBackward(/*first=*/true);      // 0
//   state.NoteSynced(true);
//   TROUPE_RETURN_IF_ERROR(state.CheckStep(optimizer, /*under_way=*/true));
//   state.EndStep();
//
// Errors: kFailedPrecondition for a call in the wrong order, kInvalidArgument
// for one that the loop's options rule out.
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_LOOP_STATE_H_
#define ACTORS_ENGINE_LOOP_LOOP_STATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/engine/loop/bucket_hook.h"
#include "nn/optim/optimizer.h"

namespace troupe::actors {

class LoopState {
 public:
  // `exact_mean`: see LoopEngine::Setup.
  explicit LoopState(bool exact_mean) : exact_mean_(exact_mean) {}

  // Return the error of a call that is refused now. `under_way`: whether a
  // backward has run since the last ZeroGrad() or Step(). `optimizer`: null if
  // there is none.
  absl::Status CheckAttachOptimizer(bool under_way) const;
  // `rounds`: whether the plan reduces gradients in a dtype of its own.
  absl::Status CheckSetHook(bool rounds, bool under_way) const;
  absl::Status CheckStepInBackward(const nn::Optimizer* optimizer,
                                   bool under_way) const;
  // `has_loss`: whether it begins at a loss's statistics.
  absl::Status CheckBackward(bool has_loss, bool synced) const;
  absl::Status CheckStep(const nn::Optimizer* optimizer, bool under_way) const;
  absl::Status CheckZeroGrad(bool under_way) const;
  // Refuses a call from inside of the hook, or, while another call is under
  // way, from inside of another model's.
  absl::Status CheckOutsideHooks() const;

  BucketHook* hook() const { return hook_; }  // null: all-reduces
  void set_hook(BucketHook* hook) { hook_ = hook; }
  // Whether backwards update (LoopEngine::StepInBackward).
  bool steps_in_backward() const { return steps_in_backward_; }
  void set_steps_in_backward() { steps_in_backward_ = true; }
  // Sets whether a backward, a step or a wait for gradients is under way, in
  // which hooks of other engines of the rank may run.
  void set_busy(bool busy) { busy_ = busy; }

  // Returns the number of steps that have ended.
  std::int64_t step() const { return step_; }
  // Whether a backward of this step was synced, and whether the last one was.
  bool reducing() const { return reducing_; }
  bool synced() const { return synced_; }

  // Begins a backward, which may be the first of a step. Returns its number in
  // the step.
  int BeginBackward(bool first) {
    backwards_ = first ? 0 : backwards_ + 1;
    return backwards_;
  }
  // Notes whether the backward that has begun is synced.
  void NoteSynced(bool synced) {
    synced_ = synced;
    reducing_ = reducing_ || synced;
  }
  // Discards what the backwards of the step have done.
  void Discard() { reducing_ = synced_ = false; }
  void EndStep() {
    ++step_;
    Discard();
  }

 private:
  absl::Status CheckUpdatingBackward(bool synced) const;

  const bool exact_mean_;
  BucketHook* hook_ = nullptr;
  bool steps_in_backward_ = false;
  bool busy_ = false;
  std::int64_t step_ = 0;
  int backwards_ = 0;  // number of the last backward in this step
  bool reducing_ = false;
  bool synced_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_LOOP_STATE_H_
