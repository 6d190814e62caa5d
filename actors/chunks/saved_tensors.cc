#include "actors/chunks/saved_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "base/check.h"
#include "nn/autograd/sharding.h"
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

// Returns host memory of zeros: what is read of a piece leaves its padding.
absl::StatusOr<nn::Tensor> HostZeros(const nn::Shape& shape, nn::DType dtype,
                                     nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor host,
      nn::Tensor::Create(shape, dtype, nn::HostAllocator(kernels)));
  if (host.numel() > 0) std::memset(host.raw(), 0, host.bytes());
  return host;
}

}  // namespace

template <typename Read>
absl::Status SavedTensors::Fill(const nn::Tensor& tensor, const Read& read) {
  if (tensor.host_accessible()) return read(tensor);
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor host,
                          HostZeros(tensor.shape(), tensor.dtype(), kernels_));
  TROUPE_RETURN_IF_ERROR(read(host));
  nn::CopyBytes(kernels_, nn::Queue::kCompute, host, tensor);
  return absl::OkStatus();
}

template <typename Read>
absl::Status SavedTensors::ReadPiece(const nn::Parameter& parameter,
                                     const nn::Tensor& host,
                                     const Read& read) const {
  if (!parameter.sharding.is_split()) return read(host);
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor whole,
      nn::Tensor::Create(nn::WholeShape(parameter), host.dtype(),
                         nn::HostAllocator(kernels_)));
  TROUPE_RETURN_IF_ERROR(read(whole));
  nn::CopyPiece(parameter, whole, host);
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
          FillState(arena, slot, state, [&](const nn::Tensor& host) {
            return weights.Read(*slot.parameter, host).status();
          }));
    }
  }
  return absl::OkStatus();
}

template <typename Read>
absl::Status SavedTensors::FillState(const nn::ParameterArena& arena,
                                     const nn::ArenaSlot& slot,
                                     const nn::Tensor& state,
                                     const Read& read) {
  if (arena.owners() == 1) return Fill(arena.View(state, slot), read);
  const nn::ArenaRange whole = {slot.begin,
                                slot.begin + slot.parameter->shape.numel()};
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor host,
      HostZeros(slot.parameter->shape, state.dtype(), kernels_));
  TROUPE_RETURN_IF_ERROR(read(host));
  for (const nn::ArenaRange& owned : arena.owned().All()) {
    const nn::ArenaRange both = {std::max(owned.begin, whole.begin),
                                 std::min(owned.end, whole.end)};
    if (both.begin >= both.end) continue;
    nn::CopyBytes(kernels_, nn::Queue::kCompute,
                  host.FlatView(both.begin - whole.begin, {both.size()}),
                  arena.ViewState(state, both));
  }
  return absl::OkStatus();
}

template <typename OfValue, typename OfState, typename OfBuffer>
absl::Status SavedTensors::ForEachSaved(const Checkpoint* saved,
                                        const OfValue& of_value,
                                        const OfState& of_state,
                                        const OfBuffer& of_buffer) const {
  for (const Part& part : parts_) {
    const auto& states = part.arena->states();
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      if (saved == nullptr && copies_.count(slot.parameter->name) > 0) continue;
      const std::string& name = saved == nullptr
                                    ? slot.parameter->name
                                    : SavedName(*saved, *slot.parameter);
      TROUPE_RETURN_IF_ERROR(of_value(name, part, slot));
      for (std::size_t i = 0; i < states.size(); ++i) {
        TROUPE_RETURN_IF_ERROR(
            of_state(absl::StrCat(name, ".", states[i].first), part, slot, i));
      }
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(of_buffer(buffer->name, buffer->value));
  }
  return absl::OkStatus();
}

absl::StatusOr<nn::TensorPart> SavedTensors::CopyOf(
    const std::string& name, const nn::Tensor& tensor) const {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor copy, HostCopy(tensor, name, kernels_));
  return nn::TensorPart(name, std::move(copy));
}

absl::Status SavedTensors::CopyInto(const nn::Tensor& scalars,
                                    const Share& share,
                                    CheckpointShard& shard) const {
  const std::size_t first = shard.optimizer.size();
  for (const Part& part : parts_) {
    if (part.optimizer == nullptr || !part.optimizer->CountsUpdates()) continue;
    TROUPE_RETURN_IF_ERROR(
        part.counts->CopyInto(*part.arena, scalars, copies_, kernels_, shard));
  }
  if (!share.in_place) return CopyWholes(shard);
  for (std::size_t i = first; i < shard.optimizer.size(); ++i) {
    if (!share.is_first()) shard.optimizer[i].Drop();
  }
  return CopyParts(share, shard);
}

absl::StatusOr<nn::TensorPart> SavedTensors::PartOf(
    const std::string& name, const nn::ParameterArena& arena,
    const nn::ArenaSlot& slot, std::size_t number, const Share& share) const {
  const nn::Parameter& parameter = *slot.parameter;
  const nn::Tensor& all =
      number == 0 ? arena.values() : arena.states()[number - 1].second;
  nn::TensorPart part;
  part.name = name;
  part.dtype = all.dtype();
  part.shape = nn::WholeShape(parameter);
  const bool is_sliced = arena.owners() > 1 && slot.bucket != nn::kNoBucket;
  if ((!is_sliced && !share.first_replica) ||
      (!parameter.sharding.is_split() && !share.first_piece)) {
    return part;
  }
  nn::ArenaRange own = {slot.begin, slot.begin + parameter.shape.numel()};
  if (is_sliced) {
    const nn::ArenaRange owned = arena.Owned(slot.bucket);
    own = {std::max(own.begin, owned.begin), std::min(own.end, owned.end)};
  }
  if (own.begin >= own.end) return part;
  TROUPE_ASSIGN_OR_RETURN(
      part.elements,
      HostCopy(number == 0 ? arena.View(all, own) : arena.ViewState(all, own),
               name, kernels_));
  const std::int64_t begin = own.begin - slot.begin;
  const std::int64_t end = own.end - slot.begin;
  for (const nn::ShardRange& range : nn::RangesOf(parameter)) {
    const std::int64_t from = std::max(range.local, begin);
    const std::int64_t to = std::min(range.local + range.count, end);
    if (from >= to) continue;
    part.ranges.push_back(
        {range.global + (from - range.local), from - begin, to - from});
  }
  return part;
}

absl::Status SavedTensors::CopyParts(const Share& share,
                                     CheckpointShard& shard) const {
  const auto add = [&](const std::string& name, const Part& part,
                       const nn::ArenaSlot& slot, std::size_t number,
                       std::vector<nn::TensorPart>& to) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(to.emplace_back(),
                            PartOf(name, *part.arena, slot, number, share));
    return absl::OkStatus();
  };
  return ForEachSaved(
      nullptr,
      [&](const std::string& name, const Part& part,
          const nn::ArenaSlot& slot) {
        return add(name, part, slot, /*number=*/0, shard.model);
      },
      [&](const std::string& name, const Part& part, const nn::ArenaSlot& slot,
          std::size_t i) {
        return add(name, part, slot, 1 + i, shard.optimizer);
      },
      [&](const std::string& name, const nn::Tensor& tensor) -> absl::Status {
        if (share.is_first()) {
          TROUPE_ASSIGN_OR_RETURN(shard.model.emplace_back(),
                                  CopyOf(name, tensor));
          return absl::OkStatus();
        }
        nn::TensorPart& part = shard.model.emplace_back();
        part.name = name, part.dtype = tensor.dtype();
        part.shape = tensor.shape();
        return absl::OkStatus();
      });
}

absl::Status SavedTensors::CopyWholes(CheckpointShard& shard) const {
  const auto copy = [&](const std::string& name, const nn::Tensor& tensor,
                        std::vector<nn::TensorPart>& to) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(to.emplace_back(), CopyOf(name, tensor));
    return absl::OkStatus();
  };
  return ForEachSaved(
      nullptr,
      [&](const std::string& name, const Part& part,
          const nn::ArenaSlot& slot) -> absl::Status {
        if (const nn::Tensor* whole = Gathered(part, slot, /*number=*/0)) {
          shard.model.push_back({name, *whole});
          return absl::OkStatus();
        }
        return copy(name, slot.parameter->value, shard.model);
      },
      [&](const std::string& name, const Part& part, const nn::ArenaSlot& slot,
          std::size_t i) -> absl::Status {
        if (const nn::Tensor* whole = Gathered(part, slot, 1 + i)) {
          shard.optimizer.push_back({name, *whole});
          return absl::OkStatus();
        }
        return copy(name, OwnState(part, slot, i), shard.optimizer);
      },
      [&](const std::string& name, const nn::Tensor& tensor) {
        return copy(name, tensor, shard.model);
      });
}

const nn::Tensor* SavedTensors::Gathered(const Part& part,
                                         const nn::ArenaSlot& slot,
                                         std::size_t number) {
  const bool is_slice =
      number > 0 && part.arena->owners() > 1 && slot.bucket != nn::kNoBucket;
  if (!slot.parameter->sharding.is_split() && !is_slice) return nullptr;
  const std::size_t index = slot.parameter->index - part.arena->first_index();
  TROUPE_CHECK(index < part.wholes.size() &&
                   number < part.wholes[index].size() &&
                   part.wholes[index][number].defined(),
               "pieces and slices are gathered for a checkpoint");
  return &part.wholes[index][number];
}

nn::Tensor SavedTensors::OwnState(const Part& part, const nn::ArenaSlot& slot,
                                  std::size_t i) {
  const nn::ParameterArena& arena = *part.arena;
  return arena.states()[i].second.FlatView(arena.owned().PlaceOf(slot.begin),
                                           slot.parameter->shape);
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
  const auto skips = [&](const std::string& name) {
    const bool missing = checkpoint.FindModel(name) == nullptr;
    return states || (missing && allow_missing);
  };
  const auto read = [&](const std::string& name) {
    return [this, &checkpoint, name](const nn::Tensor& host) {
      return ReadModelTensor(checkpoint, name, host,
                             nn::HostAllocator(kernels_));
    };
  };
  return ForEachSaved(
      &checkpoint,
      [&](const std::string& name, const Part&,
          const nn::ArenaSlot& slot) -> absl::Status {
        if (skips(name)) return absl::OkStatus();
        return Fill(slot.parameter->value, [&](const nn::Tensor& host) {
          return ReadPiece(*slot.parameter, host, read(name));
        });
      },
      [&](const std::string& name, const Part& part, const nn::ArenaSlot& slot,
          std::size_t i) -> absl::Status {
        const bool missing = checkpoint.FindOptimizer(name) == nullptr;
        if (!states || (missing && allow_missing)) return absl::OkStatus();
        return FillState(*part.arena, slot, part.arena->states()[i].second,
                         [&](const nn::Tensor& host) {
                           return ReadPiece(*slot.parameter, host,
                                            [&](const nn::Tensor& whole) {
                                              return checkpoint.ReadOptimizer(
                                                  name, whole);
                                            });
                         });
      },
      [&](const std::string& name, const nn::Tensor& tensor) {
        return skips(name) ? absl::OkStatus() : Fill(tensor, read(name));
      });
}

}  // namespace troupe::actors
