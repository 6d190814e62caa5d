#include "actors/chunks/update_counts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "actors/chunks/step/loss_scaler.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"
#include "nn/optim/arena_optimizer.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {
namespace {

// Returns whether a tensor of the optimizer has a number other than 0.
absl::StatusOr<bool> HasNumbers(const Checkpoint& checkpoint,
                                const std::string& name) {
  const nn::SafetensorsEntry& entry = *checkpoint.FindOptimizer(name);
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor tensor,
                          nn::Tensor::Create(entry.shape, entry.dtype, memory));
  TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(name, tensor));
  const auto* const bytes = static_cast<const char*>(tensor.raw());
  return std::any_of(bytes, bytes + tensor.bytes(),
                     [](char byte) { return byte != 0; });
}

// Returns whether an update has changed states of parameter `name` in the
// checkpoint, if that has any. Master values and averages do not count: they
// begin as copies of the parameter.
absl::StatusOr<bool> WasUpdated(const Checkpoint& checkpoint,
                                const nn::ParameterArena& arena,
                                const std::string& name) {
  for (const auto& [state_name, state] : arena.states()) {
    if (state_name == nn::kMasterState || state_name == nn::kAverageState) {
      continue;
    }
    const std::string saved = absl::StrCat(name, ".", state_name);
    if (checkpoint.FindOptimizer(saved) == nullptr) continue;
    if (checkpoint.state().has_update_counts) return true;
    TROUPE_ASSIGN_OR_RETURN(const bool updated, HasNumbers(checkpoint, saved));
    if (updated) return true;
  }
  return false;
}

absl::StatusOr<double> CountOf(const Checkpoint& checkpoint,
                               const nn::ParameterArena& arena,
                               const nn::Parameter& parameter,
                               double updates_of_run) {
  const std::string& name = SavedName(checkpoint, parameter);
  const std::string saved = absl::StrCat(name, ".", kUpdateCountState);
  if (checkpoint.FindOptimizer(saved) == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const bool updated,
                            WasUpdated(checkpoint, arena, name));
    return updated ? updates_of_run : 0;
  }
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor count,
      nn::Tensor::Create(nn::Shape(), nn::DType::kF64, memory));
  TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(saved, count));
  return count.data<double>()[0];
}

absl::StatusOr<nn::Tensor> HostNumber(double number, nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor tensor,
                          nn::Tensor::Create(nn::Shape(), nn::DType::kF64,
                                             nn::HostAllocator(kernels)));
  tensor.data<double>()[0] = number;
  return tensor;
}

// Returns, in host memory, the count of parameters with this first update.
absl::StatusOr<nn::Tensor> CountSince(double first_update,
                                      const nn::Tensor& scalars,
                                      nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor counted,
                          nn::Tensor::Create(scalars.shape(), scalars.dtype(),
                                             kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.CountFrom(first_update, scalars, counted));
  return nn::CopyToHost(kernels, nn::Queue::kReadBack,
                        counted.FlatView(nn::kStepScalar, nn::Shape()));
}

}  // namespace

absl::Status UpdateCounts::Restore(const Checkpoint& checkpoint,
                                   const nn::ParameterArena& arena,
                                   double updates) {
  TROUPE_ASSIGN_OR_RETURN(const double skipped, SkippedSteps(checkpoint));
  const double updates_of_saved =
      static_cast<double>(checkpoint.state().step) - skipped;
  const std::size_t slots = arena.slots().size();
  first_updates_.assign(slots, 0);
  frozen_.assign(slots, 0);
  for (std::size_t i = 0; i < slots; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        frozen_[i], CountOf(checkpoint, arena, *arena.slots()[i].parameter,
                            updates_of_saved));
    first_updates_[i] = updates - frozen_[i];
  }
  return absl::OkStatus();
}

void UpdateCounts::LeaveOut(const std::vector<bool>& left_out) {
  first_updates_.resize(left_out.size(), 0);
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    if (left_out[i]) first_updates_[i] += 1;
  }
}

absl::Status UpdateCounts::CopyInto(const nn::ParameterArena& arena,
                                    const nn::Tensor& scalars,
                                    const std::set<std::string>& left_out,
                                    nn::Kernels& kernels,
                                    CheckpointShard& shard) const {
  const nn::QueueScope scope(kernels, nn::Queue::kReadBack);
  std::map<double, nn::Tensor> copies;  // keys: first updates
  for (std::size_t i = 0; i < arena.slots().size(); ++i) {
    const nn::ArenaSlot& slot = arena.slots()[i];
    const std::string& name = slot.parameter->name;
    if (left_out.count(name) > 0) continue;
    nn::Tensor count;
    if (slot.bucket == nn::kNoBucket) {
      TROUPE_ASSIGN_OR_RETURN(
          count, HostNumber(frozen_.empty() ? 0 : frozen_[i], kernels));
    } else {
      const double first = first_updates_.empty() ? 0 : first_updates_[i];
      if (first == 0) continue;
      nn::Tensor& copy = copies[first];
      if (!copy.defined()) {
        TROUPE_ASSIGN_OR_RETURN(copy, CountSince(first, scalars, kernels));
      }
      count = copy;
    }
    shard.optimizer.push_back(
        {absl::StrCat(name, ".", kUpdateCountState), std::move(count)});
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
