#include "actors/engine/share_state.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/chunks/pieces.h"
#include "base/check.h"
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

// Gathers one bucket of a state in `whole`, an arena in host memory of the
// first replica.
absl::Status GatherBucket(const nn::ParameterArena& arena, int bucket,
                          const nn::Tensor& state, const nn::Tensor& whole,
                          nn::Kernels& kernels, LayerCollectives& replicas) {
  const nn::Tensor own = arena.ViewState(state, arena.Owned(bucket));
  if (!whole.defined()) {
    return replicas.Run(comm::Gather(/*root=*/0, own, nn::Tensor()));
  }
  const nn::Tensor host = arena.View(whole, bucket);
  if (kernels.queues() == nullptr) {
    return replicas.Run(comm::Gather(/*root=*/0, own, host));
  }
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor there,
      nn::Tensor::Create(host.shape(), host.dtype(), kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(replicas.Run(comm::Gather(/*root=*/0, own, there)));
  nn::CopyBytes(kernels, nn::Queue::kCompute, there, host);
  return absl::OkStatus();
}

// Returns the whole state on the first replica, an undefined tensor on others.
absl::StatusOr<nn::Tensor> Gather(const nn::ParameterArena& arena,
                                  const nn::Tensor& state, nn::Kernels& kernels,
                                  LayerCollectives& replicas) {
  nn::Tensor whole;
  if (replicas.rank() == 0) {
    TROUPE_ASSIGN_OR_RETURN(
        whole, nn::Tensor::Create(arena.values().shape(), state.dtype(),
                                  nn::HostAllocator(kernels)));
  }
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    TROUPE_RETURN_IF_ERROR(
        GatherBucket(arena, bucket, state, whole, kernels, replicas));
  }
  if (!whole.defined()) return whole;
  const nn::ArenaRange frozen = arena.owned().All().back();
  nn::CopyBytes(kernels, nn::Queue::kCompute, arena.ViewState(state, frozen),
                arena.View(whole, frozen));
  return whole;
}

// Gathers the pieces of one tensor of a parameter; returns the whole one on the
// first rank along tp, an undefined tensor on others.
absl::StatusOr<nn::Tensor> GatherPieces(const nn::Parameter& parameter,
                                        const nn::Tensor& own,
                                        nn::Kernels& kernels,
                                        LayerCollectives& peers) {
  const std::int64_t elems = own.numel();
  nn::Tensor pieces;
  if (peers.rank() == 0) {
    TROUPE_ASSIGN_OR_RETURN(
        pieces, nn::Tensor::Create({elems * peers.size()}, own.dtype(),
                                   nn::HostAllocator(kernels)));
  }
  TROUPE_RETURN_IF_ERROR(
      peers.Run(comm::Gather(/*root=*/0, own.FlatView(0, {elems}), pieces)));
  if (!pieces.defined()) return pieces;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor whole,
      nn::Tensor::Create(nn::WholeShape(parameter), own.dtype(),
                         nn::HostAllocator(kernels)));
  for (int coord = 0; coord < peers.size(); ++coord) {
    CopyIntoWhole(parameter, coord, pieces.FlatView(coord * elems, {elems}),
                  whole);
  }
  return whole;
}

// Gathers all tensors of one slot; the whole ones are empty on other ranks than
// the first.
absl::StatusOr<std::vector<nn::Tensor>> GatherSlot(
    const nn::ParameterArena& arena, const nn::ArenaSlot& slot,
    nn::Kernels& kernels, LayerCollectives& peers) {
  std::vector<nn::Tensor> own = {slot.parameter->value};
  for (const auto& [name, state] : arena.states()) {
    own.push_back(arena.View(state, slot));
  }
  std::vector<nn::Tensor> wholes;
  for (const nn::Tensor& piece : own) {
    TROUPE_ASSIGN_OR_RETURN(
        nn::Tensor whole, GatherPieces(*slot.parameter, piece, kernels, peers));
    if (whole.defined()) wholes.push_back(std::move(whole));
  }
  return wholes;
}

absl::Status GatherAllPieces(const EngineParts& parts, std::int64_t step) {
  LayerCollectives* const peers = parts.device.Along("tp");
  TROUPE_CHECK(peers != nullptr, "a plan with pieces has the group");
  for (ChunkParameters* parameters : parts.parameters) {
    for (int i = 0; i < parameters->num_arenas(); ++i) {
      const nn::ParameterArena& arena = parameters->arena(i);
      WholeSlots wholes;
      for (const nn::ArenaSlot& slot : arena.slots()) {
        wholes.emplace_back();
        if (!slot.parameter->sharding.is_split()) continue;
        absl::StatusOr<std::vector<nn::Tensor>> whole =
            GatherSlot(arena, slot, parts.kernels(), *peers);
        if (!whole.ok()) {
          return WithPlace(
              whole.status(),
              absl::StrCat("the pieces of ", slot.parameter->name, " along tp"),
              step);
        }
        wholes.back() = *std::move(whole);
      }
      if (peers->rank() == 0) parameters->KeepWholeSlots(i, std::move(wholes));
    }
  }
  return absl::OkStatus();
}

// Gathers values that the replicas have slices of, in the memory of the first
// one.
absl::Status GatherValues(ChunkParameters& parameters,
                          LayerCollectives& replicas, std::int64_t step) {
  for (int bucket = 0; bucket < parameters.num_buckets(); ++bucket) {
    parameters.HoldValues(bucket);
    const absl::Status status =
        replicas.Run(parameters.updates().GatherValues(bucket));
    if (!status.ok()) return WithPlace(status, "values of all owners", step);
    if (replicas.rank() != 0) parameters.ReleaseValues(bucket);
  }
  return absl::OkStatus();
}

absl::Status GatherStates(const EngineParts& parts, std::int64_t step) {
  LayerCollectives* const replicas = parts.device.Along("dp");
  TROUPE_CHECK(replicas != nullptr, "a plan with owners has the group");
  if (parts.setup.plan->gathers_values()) {
    for (ChunkParameters* parameters : parts.parameters) {
      TROUPE_RETURN_IF_ERROR(GatherValues(*parameters, *replicas, step));
    }
  }
  for (ChunkParameters* parameters : parts.parameters) {
    for (int i = 0; i < parameters->num_arenas(); ++i) {
      const nn::ParameterArena& arena = parameters->arena(i);
      std::vector<nn::Tensor> states;
      for (const auto& [name, state] : arena.states()) {
        absl::StatusOr<nn::Tensor> whole =
            Gather(arena, state, parts.kernels(), *replicas);
        if (!whole.ok()) {
          return WithPlace(whole.status(),
                           absl::StrCat("state ", name, " of all owners"),
                           step);
        }
        if (whole->defined()) states.push_back(*std::move(whole));
      }
      parameters->KeepWholeStates(i, std::move(states));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareState(const EngineParts& parts, StepKind kind,
                        std::int64_t step) {
  TROUPE_CHECK(SharesState(kind), "a step shares nothing");
  parts.position.BeginStep(StepKind::kShareBuffers, step);
  TROUPE_RETURN_IF_ERROR(ShareBuffers(parts, step));
  const pipeline::Plan& plan = *parts.setup.plan;
  const bool has_owners = plan.owners() > 1;
  if (kind == StepKind::kGatherStates &&
      (has_owners || plan.GathersPieces(parts.setup.rank))) {
    parts.events.AwaitAllUpdates();
    parts.position.BeginStep(StepKind::kGatherStates, step);
    TROUPE_RETURN_IF_ERROR(has_owners ? GatherStates(parts, step)
                                      : GatherAllPieces(parts, step));
  }
  parts.position.EndStep();
  return absl::OkStatus();
}

std::optional<StepKind> SharedForSnapshot(const pipeline::Plan& plan,
                                          int rank) {
  if (plan.owners() > 1 || plan.GathersPieces(rank)) {
    return StepKind::kGatherStates;
  }
  if (plan.SharesBuffers(rank)) return StepKind::kShareBuffers;
  return std::nullopt;
}

}  // namespace troupe::actors
