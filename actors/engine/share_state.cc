#include "actors/engine/share_state.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "actors/chunks/pieces.h"
#include "base/check.h"
#include "base/event.h"
#include "base/field_error.h"
#include "comm/communicator.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {
namespace {

// Names what was shared in an error of its collectives.
absl::Status WithPlace(const absl::Status& status, absl::string_view what,
                       std::int64_t step) {
  return base::WithMessage(status, absl::StrCat(what, ", after step ", step,
                                                ": ", status.message()));
}

absl::Status ShareBuffers(const EngineParts& parts, std::int64_t step) {
  LayerCollectives* const replicas = parts.device.Along("dp");
  for (const auto& chunk : parts.chunks) {
    for (const nn::Tensor& block : chunk->parameters().shared_buffers()) {
      TROUPE_CHECK(replicas != nullptr, "a plan that shares has the group");
      const absl::Status status =
          replicas->Run(comm::Broadcast(/*root=*/0, block));
      if (status.ok()) continue;
      return WithPlace(status, "buffers of the first replica", step);
    }
  }
  return absl::OkStatus();
}

// Brings the tensors that a checkpoint needs together on the rank that saves
// them: first the slices of a bucket along dp, on the first replica, then the
// pieces of each parameter in it along tp. All ranks gather in one order, which
// is that of the buckets.
class Gathering {
 public:
  Gathering(const EngineParts& parts, std::int64_t step)
      : step_(step),
        kernels_(parts.kernels()),
        wait_(parts.wait),
        gathers_values_(parts.setup.plan->gathers_values()),
        has_copies_(parts.setup.plan->mesh.CoordOf(parts.setup.rank,
                                                   pipeline::kTpAxis) == 0) {
    const pipeline::Plan& plan = *parts.setup.plan;
    if (plan.owners() > 1) {
      replicas_ = parts.device.Along("dp");
      TROUPE_CHECK(replicas_ != nullptr, "a plan with owners has the group");
    }
    if (plan.GathersPieces(parts.setup.rank)) {
      peers_ = parts.device.Along("tp");
      TROUPE_CHECK(peers_ != nullptr, "a plan with pieces has the group");
    }
  }

  absl::Status Run(ChunkParameters& parameters) {
    for (int i = 0; i < parameters.num_arenas(); ++i) {
      const std::vector<nn::ArenaSlot>& slots = parameters.arena(i).slots();
      WholeSlots wholes(slots.size());
      for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
        while (end < slots.size() && slots[end].bucket == slots[begin].bucket) {
          ++end;
        }
        TROUPE_RETURN_IF_ERROR(
            GatherSlots(parameters, parameters.arena(i),
                        absl::MakeConstSpan(slots).subspan(begin, end - begin),
                        absl::MakeSpan(wholes).subspan(begin, end - begin)));
      }
      if (saves()) parameters.KeepWholes(i, std::move(wholes));
    }
    return absl::OkStatus();
  }

 private:
  bool is_first_replica() const {
    return replicas_ == nullptr || replicas_->rank() == 0;
  }
  bool saves() const { return has_copies_ && is_first_replica(); }

  // Gathers what the rank that saves does not have of these slots, which are
  // one bucket, or all that are frozen.
  absl::Status GatherSlots(ChunkParameters& parameters,
                           const nn::ParameterArena& arena,
                           absl::Span<const nn::ArenaSlot> slots,
                           absl::Span<std::vector<nn::Tensor>> wholes) {
    const bool is_bucket = slots[0].bucket != nn::kNoBucket;
    const bool split = slots[0].parameter->sharding.is_split();
    // The first rank along tp saves copies, of which the others have the same.
    if (is_bucket && !split && !has_copies_) return absl::OkStatus();
    const bool has_slices = is_bucket && replicas_ != nullptr;
    const int bucket = parameters.BucketOf(*slots[0].parameter);
    if (is_bucket && gathers_values_) {
      TROUPE_RETURN_IF_ERROR(GatherValues(parameters, bucket));
    }
    std::vector<nn::Tensor> states;  // whole, if the bucket has slices
    for (const auto& [name, state] : arena.states()) {
      if (!has_slices) break;
      TROUPE_ASSIGN_OR_RETURN(
          states.emplace_back(),
          GatherState(arena, slots[0].bucket, name, state, split));
    }
    for (std::size_t i = 0; is_first_replica() && i < slots.size(); ++i) {
      const nn::ArenaSlot& slot = slots[i];
      std::vector<nn::Tensor> own = {slot.parameter->value};
      for (std::size_t s = 0; s < arena.states().size(); ++s) {
        own.push_back(has_slices
                          ? ViewOf(arena, slot, states[s])
                          : StateOf(arena, slot, arena.states()[s].second));
      }
      if (slot.parameter->sharding.is_split()) {
        TROUPE_ASSIGN_OR_RETURN(wholes[i], GatherPieces(slot, own));
      } else if (has_slices) {
        own[0] = nn::Tensor();
        wholes[i] = std::move(own);
      }
    }
    if (is_bucket && gathers_values_ && (split || !saves())) {
      parameters.ReleaseValues(bucket);
    }
    return absl::OkStatus();
  }

  // Gathers values that the replicas have slices of.
  absl::Status GatherValues(ChunkParameters& parameters, int bucket) {
    parameters.HoldValues(bucket);
    const absl::Status status =
        replicas_->Run(parameters.updates().GatherValues(bucket));
    return status.ok() ? status
                       : WithPlace(status, "values of all owners", step_);
  }

  // Returns one bucket of a state on the first replica, an undefined tensor on
  // the others. `split`: it has pieces, which stay in the memory of the device
  // to be gathered; others go to host memory.
  absl::StatusOr<nn::Tensor> GatherState(const nn::ParameterArena& arena,
                                         int bucket, const std::string& name,
                                         const nn::Tensor& state, bool split) {
    absl::StatusOr<nn::Tensor> whole =
        GatherSlices(arena.ViewState(state, arena.Owned(bucket)),
                     arena.range(bucket).size());
    if (whole.ok() && !split) whole = OnHost(*whole);
    if (whole.ok()) return whole;
    return WithPlace(whole.status(),
                     absl::StrCat("state ", name, " of all owners"), step_);
  }

  // Returns a copy that the compute queue makes, or the tensor if the host may
  // access it.
  absl::StatusOr<nn::Tensor> OnHost(const nn::Tensor& tensor) {
    if (!tensor.defined() || kernels_.queues() == nullptr) return tensor;
    return nn::CopyToHost(kernels_, nn::Queue::kCompute, tensor);
  }

  absl::StatusOr<nn::Tensor> GatherSlices(const nn::Tensor& own,
                                          std::int64_t elems) {
    if (!is_first_replica()) {
      TROUPE_RETURN_IF_ERROR(
          replicas_->Run(comm::Gather(/*root=*/0, own, nn::Tensor())));
      return nn::Tensor();
    }
    TROUPE_ASSIGN_OR_RETURN(
        const nn::Tensor whole,
        nn::Tensor::Create({elems}, own.dtype(), kernels_.allocator()));
    TROUPE_RETURN_IF_ERROR(
        replicas_->Run(comm::Gather(/*root=*/0, own, whole)));
    return whole;
  }

  // Returns the part of a slot of a bucket's state.
  static nn::Tensor ViewOf(const nn::ParameterArena& arena,
                           const nn::ArenaSlot& slot,
                           const nn::Tensor& of_bucket) {
    return of_bucket.FlatView(slot.begin - arena.range(slot.bucket).begin,
                              slot.parameter->shape);
  }
  // The same of a state that the rank has all of.
  static nn::Tensor StateOf(const nn::ParameterArena& arena,
                            const nn::ArenaSlot& slot,
                            const nn::Tensor& state) {
    return state.FlatView(arena.owned().PlaceOf(slot.begin),
                          slot.parameter->shape);
  }

  // Gathers the pieces of all tensors of a parameter; returns the whole ones on
  // the first rank along tp, none on others.
  absl::StatusOr<std::vector<nn::Tensor>> GatherPieces(
      const nn::ArenaSlot& slot, const std::vector<nn::Tensor>& own) {
    absl::StatusOr<std::vector<nn::Tensor>> wholes =
        MakeWhole(*slot.parameter, own);
    if (wholes.ok()) return wholes;
    return WithPlace(
        wholes.status(),
        absl::StrCat("the pieces of ", slot.parameter->name, " along tp"),
        step_);
  }

  absl::StatusOr<std::vector<nn::Tensor>> MakeWhole(
      const nn::Parameter& parameter, const std::vector<nn::Tensor>& own) {
    std::vector<nn::Tensor> all, wholes;
    for (const nn::Tensor& piece : own) {
      TROUPE_ASSIGN_OR_RETURN(all.emplace_back(), GatherPiece(piece));
    }
    if (peers_->rank() != 0) return wholes;
    TROUPE_RETURN_IF_ERROR(AwaitHost());
    for (const nn::Tensor& pieces : all) {
      TROUPE_ASSIGN_OR_RETURN(
          const nn::Tensor whole,
          nn::Tensor::Create(nn::WholeShape(parameter), pieces.dtype(),
                             nn::HostAllocator(kernels_)));
      const std::int64_t elems = pieces.numel() / peers_->size();
      for (int coord = 0; coord < peers_->size(); ++coord) {
        CopyIntoWhole(parameter, coord, pieces.FlatView(coord * elems, {elems}),
                      whole);
      }
      wholes.push_back(whole);
    }
    return wholes;
  }

  // Returns all pieces of a tensor on the first rank along tp, for the host
  // after AwaitHost(); an undefined tensor on others.
  absl::StatusOr<nn::Tensor> GatherPiece(const nn::Tensor& own) {
    const std::int64_t elems = own.numel();
    nn::Tensor pieces;
    if (peers_->rank() == 0) {
      TROUPE_ASSIGN_OR_RETURN(
          pieces, nn::Tensor::Create({elems * peers_->size()}, own.dtype(),
                                     kernels_.allocator()));
    }
    TROUPE_RETURN_IF_ERROR(peers_->Run(
        comm::Gather(/*root=*/0, own.FlatView(0, {elems}), pieces)));
    return OnHost(pieces);
  }

  // Waits until the host may read the copies.
  absl::Status AwaitHost() {
    if (kernels_.queues() == nullptr) return absl::OkStatus();
    const base::Event copied = nn::Record(kernels_, nn::Queue::kCompute);
    while (!copied.ready()) wait_.AwaitNews();
    return copied.status();
  }

  const std::int64_t step_;
  nn::Kernels& kernels_;
  QuietWait& wait_;
  const bool gathers_values_;
  const bool has_copies_;  // whether it is the first rank along tp
  LayerCollectives* replicas_ = nullptr;  // null: no tensor has slices
  LayerCollectives* peers_ = nullptr;     // null: it gathers no pieces
};

}  // namespace

absl::Status ShareState(const EngineParts& parts, StepKind kind,
                        std::int64_t step) {
  TROUPE_CHECK(SharesState(kind), "a step shares nothing");
  parts.position.BeginStep(StepKind::kShareBuffers, step);
  TROUPE_RETURN_IF_ERROR(ShareBuffers(parts, step));
  const pipeline::Plan& plan = *parts.setup.plan;
  if (kind == StepKind::kGatherStates &&
      (plan.owners() > 1 || plan.GathersPieces(parts.setup.rank))) {
    parts.events.AwaitAllUpdates();
    parts.position.BeginStep(StepKind::kGatherStates, step);
    Gathering gathering(parts, step);
    for (ChunkParameters* parameters : parts.parameters) {
      TROUPE_RETURN_IF_ERROR(gathering.Run(*parameters));
    }
  }
  parts.position.EndStep();
  return absl::OkStatus();
}

std::optional<StepKind> SharedForSnapshot(const pipeline::Plan& plan, int rank,
                                          bool in_place) {
  if (!in_place && (plan.owners() > 1 || plan.GathersPieces(rank))) {
    return StepKind::kGatherStates;
  }
  if (plan.SharesBuffers(rank)) return StepKind::kShareBuffers;
  return std::nullopt;
}

}  // namespace troupe::actors
