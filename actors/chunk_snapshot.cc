// A chunk's parameters, buffers and optimizer states, out of and into memory.

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/chunk.h"

namespace troupe::actors {
namespace {

nn::Tensor Clone(const nn::Tensor& tensor, nn::CachingAllocator& allocator) {
  nn::Tensor copy =
      nn::Tensor::Empty(tensor.shape(), tensor.dtype(), allocator);
  std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

}  // namespace

void Chunk::CopyInto(CheckpointShard& shard) {
  nn::CachingAllocator& allocator = kernels_.allocator();
  for (const nn::ArenaSlot& slot : arena_->slots()) {
    shard.model.push_back(
        {slot.parameter->name, Clone(slot.parameter->value, allocator)});
    for (const auto& [name, state] : arena_->states()) {
      shard.optimizer.push_back({absl::StrCat(slot.parameter->name, ".", name),
                                 Clone(arena_->View(state, slot), allocator)});
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    shard.model.push_back({buffer->name, Clone(buffer->value, allocator)});
  }
}

absl::Status Chunk::Restore(const Checkpoint& checkpoint) {
  for (const nn::ArenaSlot& slot : arena_->slots()) {
    const std::string& name = slot.parameter->name;
    TROUPE_RETURN_IF_ERROR(checkpoint.ReadModel(name, slot.parameter->value));
    for (const auto& [state_name, state] : arena_->states()) {
      TROUPE_RETURN_IF_ERROR(checkpoint.ReadOptimizer(
          absl::StrCat(name, ".", state_name), arena_->View(state, slot)));
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(checkpoint.ReadModel(buffer->name, buffer->value));
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
