// Loss scaling of a rank (nn/kernels/loss_scale.h), as PyTorch's GradScaler
// does it, or with a scale that never changes (LossScaleRule::Fixed), to count
// the steps that are skipped. The device computes the scale from the outcomes
// of earlier steps, so the host waits for none. All ranks sum their findings
// before an update, and so have the same scale.
//
//   TROUPE_ASSIGN_OR_RETURN(auto scaler, LossScaler::Create(kernels, options));
//   TROUPE_RETURN_IF_ERROR(kernels.SetStepScalars(values, scalars));
//   TROUPE_RETURN_IF_ERROR(scaler->BeginStep(scalars));
//   backward.Seed(loss, scaler->seed());
//   // When the scalars have the findings of all ranks:
//   TROUPE_RETURN_IF_ERROR(scaler->EndStep(scalars));
//
// A step that is skipped changes neither parameters, states and averages nor
// the optimizer's count of steps.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_LOSS_SCALER_H_
#define ACTORS_CHUNKS_STEP_LOSS_SCALER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/loss_scale.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// Name of the state, f64[kNumLossScaleState], among a checkpoint's optimizer
// states; and of the number of skipped steps, f64 of shape [], which is all
// that is saved of a scale that never changes.
inline constexpr char kLossScalerState[] = "loss_scaler";
inline constexpr char kSkippedStepsState[] = "skipped_steps";

// Returns the number of steps that the run of the checkpoint has skipped; 0 if
// it does not say so.
absl::StatusOr<double> SkippedSteps(const Checkpoint& checkpoint);

class LossScaler {
 public:
  struct Options {
    double first_scale = nn::kFirstLossScale;
    nn::LossScaleRule rule;
    // Queue of updates on a device with queues.
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the state.
  static absl::StatusOr<std::unique_ptr<LossScaler>> Create(
      nn::Kernels& kernels, const Options& options);

  // Sets the loss scale in the scalars of a training step. Enqueued in
  // kCompute.
  absl::Status BeginStep(nn::Tensor& scalars);
  // Returns the gradient of the loss, with which the step's backwards begin.
  const nn::Tensor& seed() const { return seed_; }
  // Computes the next step's scale, in the queue of updates. Call it once a
  // step, when `scalars` has the findings of all ranks.
  absl::Status EndStep(const nn::Tensor& scalars);

  const nn::LossScaleRule& rule() const { return options_.rule; }
  // Whether the scale may change.
  bool is_dynamic() const { return options_.rule.backoff != 1; }

  // Subtracts the skipped steps from the step of `scalars`, which kReadBack has
  // written. Enqueued in kReadBack.
  absl::Status CountUpdates(nn::Tensor& scalars) const;
  // Adds a copy of the state, made by kReadBack, to the optimizer's tensors.
  // Without a dynamic scale, that is the number of skipped steps.
  absl::Status CopyInto(CheckpointShard& shard) const;
  // Sets the state to the checkpoint's; without a dynamic scale, the number of
  // skipped steps alone. Errors: those of Checkpoint::ReadOptimizer().
  absl::Status Restore(const Checkpoint& checkpoint);

 private:
  LossScaler(nn::Kernels& kernels, const Options& options)
      : kernels_(kernels), options_(options) {}
  absl::Status Init();

  nn::Kernels& kernels_;
  const Options options_;
  nn::Tensor state_;
  nn::Tensor seed_;      // f64[nn::ops::kNumLossStats]
  base::Event settled_;  // completes with the update of state_ by the last step
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_LOSS_SCALER_H_
