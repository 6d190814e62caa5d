#include "actors/chunks/bucket_arenas.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<BucketArenas>> BucketArenas::Create(
    const ArenaLayout& layout, const Options& options) {
  std::unique_ptr<BucketArenas> arenas(new BucketArenas);
  arenas->places_ = layout.places;
  arenas->slices_grads_ = options.slice_grads;
  for (const ArenaLayout::Arena& arena : layout.arenas) {
    TROUPE_RETURN_IF_ERROR(arenas->Add(arena, options));
  }
  // A slot has the number of its bucket in the arena; callers use the plan's.
  for (int bucket = 0; bucket < arenas->num_buckets(); ++bucket) {
    const Place& place = layout.places[bucket];
    for (const nn::Parameter* parameter :
         layout.arenas[place.arena].buckets[place.k]) {
      arenas->bucket_of_[parameter->index] = bucket;
    }
  }
  return arenas;
}

absl::Status BucketArenas::Add(const ArenaLayout::Arena& layout,
                               const Options& options) {
  for (nn::Parameter* const parameter : layout.frozen) {
    parameter->unused = std::exchange(parameter->requires_grad, false);
  }
  nn::ParameterArena::Options of_arena;
  of_arena.copied_buckets = layout.copied;
  of_arena.frozen = layout.frozen;
  of_arena.pad_elems *= options.replicas;
  of_arena.owner = options.owner;
  of_arena.owners = options.owners;
  of_arena.threads = options.threads;
  of_arena.kernels = options.kernels;
  of_arena.grad_dtype = options.grad_dtype;
  of_arena.grad_allocator = options.grad_allocator;
  of_arena.value_allocator = options.value_allocator;
  of_arena.first_index = static_cast<int>(bucket_of_.size());
  of_arena.keep_grads = options.keep_grads || layout.buckets.size() < 2;
  of_arena.grads_ahead = options.grads_ahead;
  of_arena.slice_grads = options.slice_grads;
  TROUPE_ASSIGN_OR_RETURN(
      std::shared_ptr<nn::ParameterArena> arena,
      nn::ParameterArena::Create(layout.buckets, of_arena,
                                 options.kernels->allocator()));
  if (options.release_values) {
    // No more than one bucket is whole at a time.
    nn::ReleasedValues& released = released_.emplace_back(
        *arena, nn::kPoisonsReleased, options.share_pages);
    for (int k = 0; k < arena->num_buckets(); ++k) {
      arena->InitializeBucket(options.seed, k);
      released.Release(k);
    }
    arena->InitializeBucket(options.seed, nn::kNoBucket);
  } else {
    TROUPE_RETURN_IF_ERROR(arena->Initialize(options.seed));
  }
  bucket_of_.resize(bucket_of_.size() + arena->slots().size(), nn::kNoBucket);
  arenas_.push_back(std::move(arena));
  return absl::OkStatus();
}

bool BucketArenas::Has(const nn::Parameter& parameter) const {
  for (const auto& arena : arenas_) {
    const std::vector<nn::ArenaSlot>& slots = arena->slots();
    const int slot = parameter.index - arena->first_index();
    if (slot < 0 || slot >= static_cast<int>(slots.size())) continue;
    return slots[slot].parameter == &parameter &&
           slots[slot].bucket != nn::kNoBucket;
  }
  return false;
}

void BucketArenas::BeginStep() {
  for (const auto& arena : arenas_) arena->BeginStep();
}

std::size_t BucketArenas::never_held_bytes() const {
  std::size_t bytes = 0;
  for (const nn::ReleasedValues& released : released_) {
    bytes += released.never_held_bytes();
  }
  return bytes;
}

nn::Tensor BucketArenas::Grads(int bucket) const {
  const nn::ParameterArena& arena = ArenaOf(bucket);
  const int k = places_[bucket].k;
  nn::Tensor detached;
  if (slices_grads_) detached = arena.DetachedGrads(k);
  return detached.defined() ? detached : arena.BucketGrads(k);
}

nn::Tensor BucketArenas::UnpaddedGrads(int bucket) const {
  const nn::ParameterArena& arena = ArenaOf(bucket);
  const int k = places_[bucket].k;
  nn::ArenaRange range = {arena.range(k).end, 0};
  for (const nn::ArenaSlot& slot : arena.slots()) {
    if (slot.bucket != k) continue;
    range.begin = std::min(range.begin, slot.begin);
    range.end = std::max(range.end, slot.begin + slot.parameter->shape.numel());
  }
  return Grads(bucket).FlatView(range.begin - arena.range(k).begin,
                                {range.size()});
}

nn::Tensor BucketArenas::OwnedValues(int bucket) const {
  const nn::ParameterArena& arena = ArenaOf(bucket);
  return arena.View(arena.values(), arena.Owned(places_[bucket].k));
}

std::vector<nn::Tensor> BucketArenas::StateOf(int bucket) const {
  const nn::ParameterArena& arena = ArenaOf(bucket);
  const int k = places_[bucket].k;
  if (!released_.empty()) return {};
  std::vector<nn::Tensor> tensors = {arena.BucketValues(k)};
  if (arena.owners() > 1) return tensors;
  for (const auto& [name, state] : arena.states()) {
    tensors.push_back(arena.View(state, k));
  }
  return tensors;
}

}  // namespace troupe::actors
