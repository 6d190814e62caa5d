#include "actors/chunks/step/loss_scaler.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/loss.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {

absl::StatusOr<double> SkippedSteps(const Checkpoint& checkpoint) {
  const bool dynamic = checkpoint.FindOptimizer(kLossScalerState) != nullptr;
  if (!dynamic && checkpoint.FindOptimizer(kSkippedStepsState) == nullptr) {
    return 0;
  }
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor state,
      nn::Tensor::Create({nn::kNumLossScaleState}, nn::DType::kF64, memory));
  nn::LossScaleState& values = nn::LossScaleIn(state);
  if (dynamic) {
    TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(kLossScalerState, state));
  } else {
    TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(
        kSkippedStepsState,
        state.FlatView(nn::kSkippedStepsOfState, nn::Shape())));
  }
  return values.skipped_steps;
}

absl::StatusOr<std::unique_ptr<LossScaler>> LossScaler::Create(
    nn::Kernels& kernels, const Options& options) {
  std::unique_ptr<LossScaler> scaler(new LossScaler(kernels, options));
  TROUPE_RETURN_IF_ERROR(scaler->Init());
  return scaler;
}

absl::Status LossScaler::Init() {
  nn::Allocator& memory = kernels_.allocator();
  TROUPE_ASSIGN_OR_RETURN(state_, nn::Tensor::Create({nn::kNumLossScaleState},
                                                     nn::DType::kF64, memory));
  TROUPE_ASSIGN_OR_RETURN(seed_, nn::Tensor::Create({nn::ops::kNumLossStats},
                                                    nn::DType::kF64, memory));
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor first,
                          nn::Tensor::Create(state_.shape(), state_.dtype(),
                                             nn::HostAllocator(kernels_)));
  nn::LossScaleIn(first) = nn::LossScaleState();
  nn::LossScaleIn(first).scale = options_.first_scale;
  nn::CopyBytes(kernels_, nn::Queue::kCompute, first, state_);
  return kernels_.Fill(0, seed_);
}

absl::Status LossScaler::BeginStep(nn::Tensor& scalars) {
  nn::Wait(kernels_, nn::Queue::kCompute, settled_);
  TROUPE_RETURN_IF_ERROR(kernels_.ApplyLossScale(state_, scalars));
  nn::Tensor scale = seed_.FlatView(nn::ops::kLossSum, {1});
  return kernels_.Copy(state_.FlatView(nn::kScaleOfState, {1}), scale);
}

absl::Status LossScaler::EndStep(const nn::Tensor& scalars) {
  {
    const nn::QueueScope scope(kernels_, options_.update_queue);
    TROUPE_RETURN_IF_ERROR(
        kernels_.UpdateLossScale(options_.rule, scalars, state_));
  }
  settled_ = nn::Record(kernels_, options_.update_queue);
  return absl::OkStatus();
}

absl::Status LossScaler::CountUpdates(nn::Tensor& scalars) const {
  nn::Wait(kernels_, nn::Queue::kReadBack, settled_);
  const nn::QueueScope scope(kernels_, nn::Queue::kReadBack);
  return kernels_.ApplyLossScale(state_, scalars);
}

absl::Status LossScaler::CopyInto(CheckpointShard& shard) const {
  nn::Wait(kernels_, nn::Queue::kReadBack, settled_);
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor copy, nn::CopyToHost(kernels_, nn::Queue::kReadBack, state_));
  if (is_dynamic()) {
    shard.optimizer.push_back({kLossScalerState, std::move(copy)});
  } else {
    shard.optimizer.push_back(
        {kSkippedStepsState,
         copy.FlatView(nn::kSkippedStepsOfState, nn::Shape())});
  }
  return absl::OkStatus();
}

absl::Status LossScaler::Restore(const Checkpoint& checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor saved,
                          nn::Tensor::Create(state_.shape(), state_.dtype(),
                                             nn::HostAllocator(kernels_)));
  if (is_dynamic()) {
    TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(kLossScalerState, saved));
  } else {
    nn::LossScaleState& state = nn::LossScaleIn(saved);
    state = nn::LossScaleState();
    state.scale = options_.first_scale;
    TROUPE_ASSIGN_OR_RETURN(state.skipped_steps, SkippedSteps(checkpoint));
  }
  nn::CopyBytes(kernels_, nn::Queue::kCompute, saved, state_);
  return absl::OkStatus();
}

}  // namespace troupe::actors
