#include "actors/engine/recording/graph_inputs.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {
namespace {

std::vector<nn::Tensor> FlatOf(const StepBatches& batches) {
  std::vector<nn::Tensor> flat;
  for (const data::Batch& batch : batches) {
    flat.push_back(batch.inputs);
    flat.push_back(batch.targets);
  }
  return flat;
}

// Returns step and position of each micro-batch, in host memory from which the
// device copies.
absl::StatusOr<nn::Tensor> DrawsOf(std::int64_t step,
                                   const StepBatches& batches,
                                   nn::Kernels& kernels) {
  const auto count = static_cast<std::int64_t>(batches.size());
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor draws,
                          nn::Tensor::Create({count, 2}, nn::DType::kI32,
                                             nn::HostAllocator(kernels)));
  for (std::int64_t m = 0; m < count; ++m) {
    std::int32_t* const at = draws.data<std::int32_t>() + 2 * m;
    at[0] = static_cast<std::int32_t>(step);
    at[1] = static_cast<std::int32_t>(batches[m].position);
  }
  return draws;
}

}  // namespace

GraphInputs::GraphInputs(nn::Kernels& kernels, nn::DType dtype,
                         const StepBatches& batches)
    : kernels_(kernels), dtype_(dtype), staged_(kernels) {
  for (const nn::Tensor& tensor : FlatOf(batches)) {
    like_.push_back(
        nn::Tensor::Meta(tensor.shape(), tensor.dtype(), tensor.device()));
  }
  like_.push_back(
      nn::Tensor::Meta({static_cast<std::int64_t>(batches.size()), 2},
                       nn::DType::kI32, nn::Device{}));
}

absl::Status GraphInputs::TakeMemory() {
  TROUPE_ASSIGN_OR_RETURN(block_,
                          nn::TensorBlock::Create(like_, kernels_.allocator()));
  for (const nn::Tensor& loaded : block_->tensors()) {
    if (!nn::IsFloating(loaded.dtype()) || loaded.dtype() == dtype_) {
      here_.push_back(loaded);
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(
        nn::Tensor here,
        nn::Tensor::Create(loaded.shape(), dtype_, kernels_.allocator()));
    here_.push_back(std::move(here));
  }
  return absl::OkStatus();
}

bool GraphInputs::Fit(const StepBatches& batches) const {
  if (2 * batches.size() + 1 != like_.size()) return false;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    const nn::Tensor& inputs = like_[2 * m];
    const nn::Tensor& targets = like_[2 * m + 1];
    if (batches[m].inputs.shape() != inputs.shape() ||
        batches[m].inputs.dtype() != inputs.dtype() ||
        batches[m].targets.shape() != targets.shape() ||
        batches[m].targets.dtype() != targets.dtype()) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<StepBatches> GraphInputs::Place(std::int64_t step,
                                               const StepBatches& batches) {
  if (here_.empty()) TROUPE_RETURN_IF_ERROR(TakeMemory());
  std::vector<nn::Tensor> loaded = FlatOf(batches);
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor draws, DrawsOf(step, batches, kernels_));
  loaded.push_back(std::move(draws));
  TROUPE_ASSIGN_OR_RETURN(
      const nn::TensorBlock packed,
      nn::TensorBlock::Create(like_, nn::HostAllocator(kernels_)));
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    std::memcpy(packed.tensors()[i].raw(), loaded[i].raw(), loaded[i].bytes());
  }
  nn::Tensor bytes = block_->bytes();
  TROUPE_RETURN_IF_ERROR(staged_.Bring(packed.bytes(), bytes));
  for (std::size_t i = 0; i < here_.size(); ++i) {
    const nn::Tensor& as_loaded = block_->tensors()[i];
    if (here_[i].dtype() == as_loaded.dtype()) continue;
    TROUPE_RETURN_IF_ERROR(kernels_.Copy(as_loaded, here_[i]));
  }
  StepBatches placed = batches;
  for (std::size_t m = 0; m < placed.size(); ++m) {
    placed[m].inputs = here_[2 * m];
    placed[m].targets = here_[2 * m + 1];
  }
  return placed;
}

}  // namespace troupe::actors
