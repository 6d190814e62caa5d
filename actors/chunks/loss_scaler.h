// Dynamic loss scaling of one rank (nn/kernels/loss_scale.h): the scale follows
// from the outcomes of the steps before, on the device, so no step waits for
// one. All ranks add up their findings before an update, and so have the same
// scale.
//
//   TROUPE_ASSIGN_OR_RETURN(auto scaler, LossScaler::Create(kernels, options));
//   TROUPE_RETURN_IF_ERROR(kernels.SetStepScalars(values, scalars));
//   TROUPE_RETURN_IF_ERROR(scaler->BeginStep(scalars));
//   backward.Seed(loss, scaler->seed());
//   // When the scalars have the findings of all ranks:
//   TROUPE_RETURN_IF_ERROR(scaler->EndStep(scalars));
//
// What a step that is skipped leaves alone: parameters, states and averages,
// which updates do not touch, and the optimizer's count of steps.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_LOSS_SCALER_H_
#define ACTORS_CHUNKS_LOSS_SCALER_H_

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

// What a checkpoint's optimizer calls the state, f64[kNumLossScaleState].
inline constexpr char kLossScalerState[] = "loss_scaler";

class LossScaler {
 public:
  struct Options {
    double first_scale = nn::kFirstLossScale;
    nn::LossScaleRule rule;
    // Where updates go on a device with queues.
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the state.
  static absl::StatusOr<std::unique_ptr<LossScaler>> Create(
      nn::Kernels& kernels, const Options& options);

  // The scalars of a training step, which has no other scale. In kCompute.
  absl::Status BeginStep(nn::Tensor& scalars);
  // The gradient of the loss, with which the backwards of the step begin.
  const nn::Tensor& seed() const { return seed_; }
  // Once a step, in the queue of updates, where `scalars` say whether all
  // gradients are finite.
  absl::Status EndStep(const nn::Tensor& scalars);

  const nn::LossScaleRule& rule() const { return options_.rule; }

  // Adds the state to what is saved of the optimizer: a copy by kReadBack.
  absl::Status CopyInto(CheckpointShard& shard) const;
  // Errors as Checkpoint::ReadOptimizer.
  absl::Status Restore(const Checkpoint& checkpoint);

 private:
  LossScaler(nn::Kernels& kernels, const Options& options)
      : kernels_(kernels), options_(options) {}
  absl::Status Init();

  nn::Kernels& kernels_;
  const Options options_;
  nn::Tensor state_;
  nn::Tensor seed_;      // f64[nn::ops::kNumLossStats]
  base::Event settled_;  // when state_ has the outcome of the last step
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_LOSS_SCALER_H_
