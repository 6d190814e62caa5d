#include "troupe/internal/master_values.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/optim/arena_optimizer.h"
#include "nn/tensor/dtype.h"

namespace troupe {
namespace {

void ReadMaster(const nn::Parameter& parameter, const SavedModel::ReadFn& read,
                nn::Kernels& kernels,
                const actors::ChunkParameters& parameters) {
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::ParameterArena& arena = parameters.arena(i);
    const nn::Tensor* const master = MasterValuesOf(arena);
    if (master == nullptr) continue;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      if (slot.parameter != &parameter) continue;
      const nn::Tensor copy = arena.View(*master, slot);
      if (copy.host_accessible()) {
        base::OrThrow(read(copy));
        continue;
      }
      const nn::Tensor host = base::OrThrow(nn::Tensor::Create(
          copy.shape(), copy.dtype(), nn::HostAllocator(kernels)));
      if (!base::OrThrow(read(host))) continue;
      nn::CopyBytes(kernels, nn::Queue::kCompute, host, copy);
    }
  }
}

// FollowValues() on a device, whose elements the host does not read. What is no
// number is none in its copy either.
absl::Status FollowOnDevice(nn::Kernels& kernels, const nn::Tensor& values,
                            nn::Tensor copies) {
  const auto like = [&](const nn::Tensor& tensor) {
    return nn::Tensor::Create(tensor.shape(), tensor.dtype(),
                              kernels.allocator());
  };
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor same, like(values));
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor wide, like(copies));
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor chosen, like(copies));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(copies, same));
  TROUPE_RETURN_IF_ERROR(
      kernels.Binary(nn::BinaryFunction::kEqual, same, values, same));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(values, wide));
  TROUPE_RETURN_IF_ERROR(kernels.Select(same, copies, wide, chosen));
  return kernels.Copy(chosen, copies);
}

}  // namespace

const nn::Tensor* MasterValuesOf(const nn::ParameterArena& arena) {
  for (const auto& [name, state] : arena.states()) {
    if (name == nn::kMasterState) return &state;
  }
  return nullptr;
}

absl::Status FollowValues(nn::Kernels& kernels, const nn::ParameterArena& arena,
                          const nn::ArenaRange& range) {
  const nn::Tensor* const master = MasterValuesOf(arena);
  if (master == nullptr) return absl::OkStatus();
  const nn::Tensor values = arena.View(arena.values(), range);
  const nn::Tensor copies = arena.View(*master, range);
  if (kernels.queues() != nullptr) {
    return FollowOnDevice(kernels, values, copies);
  }
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor rounded,
                          nn::Tensor::Temporary(values.shape(), values.dtype(),
                                                kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(copies, rounded));
  if (std::memcmp(rounded.raw(), values.raw(), values.bytes()) == 0) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor wide,
                          nn::Tensor::Temporary(values.shape(), copies.dtype(),
                                                kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(values, wide));
  const std::size_t size = nn::SizeOf(values.dtype());
  const auto* const was = static_cast<const char*>(rounded.raw());
  const auto* const is = static_cast<const char*>(values.raw());
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    if (std::memcmp(was + i * size, is + i * size, size) == 0) continue;
    copies.data<float>()[i] = wide.data<float>()[i];
  }
  return absl::OkStatus();
}

void MasterReads::Add(const nn::Parameter& parameter, SavedModel::ReadFn read,
                      nn::Kernels& kernels,
                      const actors::ChunkParameters* parameters) {
  if (nn::SizeOf(parameter.dtype) >= nn::SizeOf(nn::DType::kF32)) return;
  if (parameters != nullptr) {
    ReadMaster(parameter, read, kernels, *parameters);
  } else {
    waiting_[&parameter] = std::move(read);
  }
}

void MasterReads::Attach(const actors::ChunkParameters& parameters,
                         nn::Kernels& kernels) {
  for (const auto& [parameter, read] : waiting_) {
    ReadMaster(*parameter, read, kernels, parameters);
  }
  waiting_.clear();
}

}  // namespace troupe
