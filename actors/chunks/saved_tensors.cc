#include "actors/chunks/saved_tensors.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/optim/arena_optimizer.h"

namespace troupe::actors {
namespace {

// Returns a copy of `tensor` in host memory, made by the queue kReadBack.
absl::StatusOr<nn::Tensor> HostCopy(const nn::Tensor& tensor,
                                    const std::string& name,
                                    nn::Kernels& kernels) {
  absl::StatusOr<nn::Tensor> copy =
      nn::CopyToHost(kernels, nn::Queue::kReadBack, tensor);
  if (copy.ok()) return copy;
  return absl::Status(copy.status().code(),
                      absl::StrCat("a copy of ", name, " for a checkpoint: ",
                                   copy.status().message()));
}

}  // namespace

template <typename Read>
absl::Status SavedTensors::Fill(const nn::Tensor& tensor, const Read& read) {
  if (tensor.host_accessible()) return read(tensor);
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor host,
                          nn::Tensor::Create(tensor.shape(), tensor.dtype(),
                                             nn::HostAllocator(kernels_)));
  TROUPE_RETURN_IF_ERROR(read(host));
  nn::CopyBytes(kernels_, nn::Queue::kCompute, host, tensor);
  return absl::OkStatus();
}

absl::Status SavedTensors::ReadWeights(const nn::WeightFile& weights) {
  // A tensor that the file lacks keeps its value.
  const auto fill = [&](const auto& named) -> absl::Status {
    if (!weights.Has(named)) return absl::OkStatus();
    return Fill(named.value, [&](const nn::Tensor& host) {
      return weights.Read(named, host).status();
    });
  };
  for (const Part& part : parts_) {
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      TROUPE_RETURN_IF_ERROR(fill(*slot.parameter));
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(fill(*buffer));
  }
  return absl::OkStatus();
}

absl::Status SavedTensors::ReadWideCopies(const nn::WeightFile& weights,
                                          const nn::ParameterArena& arena) {
  for (const auto& [name, state] : arena.states()) {
    if (name != nn::kMasterState && name != nn::kAverageState) continue;
    if (state.dtype() == arena.values().dtype()) continue;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      if (!weights.Has(*slot.parameter)) continue;
      TROUPE_RETURN_IF_ERROR(
          Fill(arena.View(state, slot), [&](const nn::Tensor& host) {
            return weights.Read(*slot.parameter, host).status();
          }));
    }
  }
  return absl::OkStatus();
}

template <typename Each>
absl::Status SavedTensors::ForEachSaved(const Checkpoint* saved,
                                        const Each& each) const {
  for (const Part& part : parts_) {
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      if (saved == nullptr && copies_.count(slot.parameter->name) > 0) continue;
      const std::string& name = saved == nullptr
                                    ? slot.parameter->name
                                    : SavedName(*saved, *slot.parameter);
      TROUPE_RETURN_IF_ERROR(
          each(name, slot.parameter->value, /*of_optimizer=*/false));
      for (const auto& [state_name, state] : part.arena->states()) {
        TROUPE_RETURN_IF_ERROR(each(absl::StrCat(name, ".", state_name),
                                    part.arena->View(state, slot),
                                    /*of_optimizer=*/true));
      }
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(
        each(buffer->name, buffer->value, /*of_optimizer=*/false));
  }
  return absl::OkStatus();
}

absl::Status SavedTensors::CopyInto(const nn::Tensor& scalars,
                                    CheckpointShard& shard) const {
  for (const Part& part : parts_) {
    if (part.optimizer == nullptr || !part.optimizer->CountsUpdates()) continue;
    TROUPE_RETURN_IF_ERROR(
        part.counts->CopyInto(*part.arena, scalars, copies_, kernels_, shard));
  }
  return ForEachSaved(nullptr,
                      [&](const std::string& name, const nn::Tensor& tensor,
                          bool of_optimizer) -> absl::Status {
                        TROUPE_ASSIGN_OR_RETURN(
                            nn::Tensor copy, HostCopy(tensor, name, kernels_));
                        (of_optimizer ? shard.optimizer : shard.model)
                            .push_back({name, std::move(copy)});
                        return absl::OkStatus();
                      });
}

absl::Status SavedTensors::Restore(const Checkpoint& checkpoint, double updates,
                                   bool allow_missing) {
  TROUPE_RETURN_IF_ERROR(
      RestoreTensors(checkpoint, /*states=*/false, allow_missing));
  for (const Part& part : parts_) {
    if (part.optimizer == nullptr) continue;
    // Sets the initial values of states that the checkpoint may lack.
    TROUPE_RETURN_IF_ERROR(part.optimizer->Begin(kernels_, *part.arena));
    if (!part.optimizer->CountsUpdates()) continue;
    TROUPE_RETURN_IF_ERROR(
        part.counts->Restore(checkpoint, *part.arena, updates));
    part.optimizer->SetFirstUpdates(*part.arena, part.counts->first_updates());
  }
  return RestoreTensors(checkpoint, /*states=*/true, allow_missing);
}

absl::Status SavedTensors::RestoreTensors(const Checkpoint& checkpoint,
                                          bool states, bool allow_missing) {
  return ForEachSaved(
      &checkpoint,
      [&](const std::string& name, const nn::Tensor& tensor,
          bool of_optimizer) -> absl::Status {
        if (of_optimizer != states) return absl::OkStatus();
        const bool missing = states ? checkpoint.FindOptimizer(name) == nullptr
                                    : checkpoint.FindModel(name) == nullptr;
        if (missing && allow_missing) return absl::OkStatus();
        return Fill(tensor, [&](const nn::Tensor& host) {
          return states ? checkpoint.ReadOptimizer(name, host)
                        : ReadModelTensor(checkpoint, name, host,
                                          nn::HostAllocator(kernels_));
        });
      });
}

}  // namespace troupe::actors
