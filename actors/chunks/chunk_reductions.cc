// Implements the reductions of ChunkParameters over the replicas.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/plain_reduction.h"
#include "actors/chunks/rounded_reduction.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Returns the reduction of the bucket that the plan names.
//   kInvalidArgument: `hook` is not the plan's.
absl::StatusOr<std::unique_ptr<BucketReduction>> MakeReduction(
    const CommunicationHook* hook, comm::ReduceOp op,
    const pipeline::Plan& plan, const GradientBucket& bucket) {
  if (bucket.replicas == 1) return std::make_unique<PlainReduction>(op);
  const std::string name = hook == nullptr ? "" : hook->name;
  if (plan.hook != name) {
    return base::FieldError<&JobSpec::hook>(absl::StrCat(
        base::FieldName<&JobSpec::hook>(), " = \"", name,
        "\", and the plan has \"", plan.hook, "\"; use the plan's"));
  }
  if (!name.empty()) return hook->make(bucket);
  if (plan.reduction_dtype.value_or(bucket.dtype) == bucket.dtype) {
    return std::make_unique<PlainReduction>(op);
  }
  return RoundedReduction::Create(bucket, *plan.reduction_dtype, op);
}

}  // namespace

nn::Allocator& ChunkParameters::ReducedMemory() const {
  nn::Allocator& memory = setup_.kernels->allocator();
  const bool on_host = &memory == &nn::HostAllocator(*setup_.kernels);
  return on_host && setup_.grad_allocator != nullptr ? *setup_.grad_allocator
                                                     : memory;
}

absl::Status ChunkParameters::AddReductions() {
  for (Place& place : places_) {
    const nn::ParameterArena& arena = *parts_[place.part].arena;
    const nn::ArenaRange range = arena.range(place.k);
    GradientBucket bucket;
    bucket.kernels = setup_.kernels.get();
    bucket.memory = &ReducedMemory();
    bucket.dtype = setup_.plan->grad_dtype.value_or(arena.values().dtype());
    bucket.elems = range.size();
    for (const nn::ArenaSlot& slot : arena.slots()) {
      if (slot.bucket != place.k) continue;
      bucket.parameters.push_back({slot.parameter->name, slot.parameter->shape,
                                   slot.begin - range.begin});
    }
    bucket.replica = setup_.replica;
    bucket.replicas = setup_.plan->mesh.dp();
    TROUPE_ASSIGN_OR_RETURN(
        place.reduction, MakeReduction(setup_.hook,
                                       setup_.averages ? comm::ReduceOp::kAvg
                                                       : comm::ReduceOp::kSum,
                                       *setup_.plan, bucket));
  }
  return absl::OkStatus();
}

void ChunkParameters::AddReduced(std::vector<nn::Tensor>& ranges) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    bool uses_grads = false;
    for (const Place& place : places_) {
      if (place.part != static_cast<int>(part)) continue;
      uses_grads |= place.reduction->uses_grads();
      place.reduction->AddRanges(ranges);
    }
    const nn::Tensor& grads = parts_[part].arena->grads();
    if (uses_grads && grads.defined()) ranges.push_back(grads);
  }
}

// The gradients of a bucket that is reduced in place may have no memory yet.
absl::Status ChunkParameters::BeginReduction(int bucket, int round) {
  if (ReducesInPlace(bucket)) return absl::OkStatus();
  const Place& place = places_[bucket];
  return place.reduction->Begin(round, Grads(place));
}

std::optional<comm::Collective> ChunkParameters::Reduce(int bucket,
                                                        int round) const {
  const Place& place = places_[bucket];
  return place.reduction->Exchange(round, Grads(place));
}

absl::Status ChunkParameters::EndReduction(int bucket) {
  if (ReducesInPlace(bucket)) return absl::OkStatus();
  const Place& place = places_[bucket];
  return place.reduction->End(Grads(place));
}

}  // namespace troupe::actors
