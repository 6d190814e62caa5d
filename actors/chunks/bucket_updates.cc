#include "actors/chunks/bucket_updates.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace troupe::actors {

BucketUpdates::BucketUpdates(const Options& options, BucketArenas& arenas)
    : options_(options), arenas_(arenas), parts_(arenas.num_arenas()) {}

absl::Status BucketUpdates::Attach(const MakeOptimizerFn& make) {
  for (int i = 0; i < arenas_.num_arenas(); ++i) {
    const std::shared_ptr<nn::ParameterArena>& arena = arenas_.handle(i);
    Part& part = parts_[i];
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<nn::Optimizer> optimizer, make());
    TROUPE_RETURN_IF_ERROR(optimizer->Attach(*arena));
    TROUPE_RETURN_IF_ERROR(optimizer->Begin(*options_.kernels, *arena));
    // An update within a reduction gives all replicas the new states.
    for (int k = 0; arena->owners() == 1 && k < arena->num_buckets(); ++k) {
      part.updates.push_back(std::make_shared<BucketUpdate>(
          options_.kernels, optimizer, arena, k, options_.scalars));
    }
    part.optimizer = std::move(optimizer);
  }
  return absl::OkStatus();
}

void BucketUpdates::BeginStep() {
  for (Part& part : parts_) {
    part.updated.clear();
    part.left_out.clear();
  }
}

absl::Status BucketUpdates::Inspect(const nn::Tensor& scalars) {
  const nn::QueueScope scope(*options_.kernels, options_.queue);
  for (int i = 0; i < arenas_.num_arenas(); ++i) {
    TROUPE_RETURN_IF_ERROR(parts_[i].optimizer->Inspect(
        *options_.kernels, scalars, arenas_.arena(i)));
  }
  return absl::OkStatus();
}

absl::Status BucketUpdates::Conclude(nn::Tensor scalars) {
  const nn::QueueScope scope(*options_.kernels, options_.queue);
  return parts_[0].optimizer->Conclude(*options_.kernels, scalars);
}

absl::Status BucketUpdates::UpdateRows(const nn::Parameter& parameter,
                                       std::int64_t begin,
                                       const nn::Tensor& grads,
                                       const nn::Tensor& scalars) {
  const int i = PartOf(parameter);
  nn::ParameterArena& arena = *arenas_.handle(i);
  Part& part = parts_[i];
  const std::size_t slot = parameter.index - arena.first_index();
  part.updated.resize(arena.slots().size());
  part.updated[slot] = true;
  const std::int64_t first =
      arena.slots()[slot].begin + begin * (grads.numel() / grads.dim(0));
  return part.optimizer->UpdateRange(*options_.kernels, scalars, arena,
                                     {first, first + grads.numel()},
                                     grads.FlatView(0, {grads.numel()}));
}

bool BucketUpdates::IsUpdated(int bucket) const {
  const BucketArenas::Place& place = arenas_.PlaceOf(bucket);
  const std::vector<bool>& updated = parts_[place.arena].updated;
  const std::vector<nn::ArenaSlot>& slots = arenas_.ArenaOf(bucket).slots();
  bool all = !updated.empty();
  for (std::size_t i = 0; all && i < updated.size(); ++i) {
    all = slots[i].bucket != place.k || updated[i];
  }
  return all;
}

void BucketUpdates::LeaveOut(absl::Span<nn::Parameter* const> parameters) {
  for (Part& part : parts_) part.left_out.clear();
  for (const nn::Parameter* parameter : parameters) {
    const int i = PartOf(*parameter);
    const nn::ParameterArena& arena = arenas_.arena(i);
    parts_[i].left_out.resize(arena.slots().size());
    parts_[i].left_out[parameter->index - arena.first_index()] = true;
  }
}

bool BucketUpdates::leaves_out() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return !part.left_out.empty(); });
}

void BucketUpdates::CountLeftOut() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (part.left_out.empty() || !part.optimizer->CountsUpdates()) continue;
    part.counts.LeaveOut(part.left_out);
    part.optimizer->SetFirstUpdates(arenas_.arena(static_cast<int>(i)),
                                    part.counts.first_updates());
  }
}

template <typename Each>
absl::Status BucketUpdates::ForEachLeft(const BucketArenas::Place& place,
                                        const Each& each) const {
  const Part& part = parts_[place.arena];
  const nn::ParameterArena& arena = arenas_.arena(place.arena);
  const nn::ArenaRange bucket = arena.Owned(place.k);
  const std::vector<nn::ArenaSlot>& slots = arena.slots();
  std::int64_t begin = bucket.begin;
  const std::size_t marked =
      std::max(part.updated.size(), part.left_out.size());
  for (std::size_t i = 0; i < marked; ++i) {
    const bool updated = i < part.updated.size() && part.updated[i];
    const bool left_out = i < part.left_out.size() && part.left_out[i];
    if (slots[i].bucket != place.k || !(updated || left_out)) continue;
    const std::int64_t end = std::min(slots[i].begin, bucket.end);
    if (begin < end) {
      TROUPE_RETURN_IF_ERROR(each(nn::ArenaRange{begin, end}));
    }
    begin = std::max(begin, slots[i].begin + slots[i].parameter->shape.numel());
  }
  return begin < bucket.end ? each(nn::ArenaRange{begin, bucket.end})
                            : absl::OkStatus();
}

absl::StatusOr<comm::Collective> BucketUpdates::SumParameters(
    int bucket, const nn::Tensor& scalars, bool counts) {
  const BucketArenas::Place& place = arenas_.PlaceOf(bucket);
  nn::ParameterArena& arena = arenas_.ArenaOf(bucket);
  nn::Optimizer& optimizer = *parts_[place.arena].optimizer;
  const nn::QueueScope scope(*options_.kernels, options_.queue);
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor sums, optimizer.BeginSums(*options_.kernels, arena, place.k));
  const nn::Tensor grads = arena.OwnedGrads(place.k);
  const std::int64_t start = arena.Owned(place.k).begin;
  TROUPE_RETURN_IF_ERROR(ForEachLeft(place, [&](const nn::ArenaRange& range) {
    return optimizer.SumRange(
        *options_.kernels, scalars, arena, range,
        grads.FlatView(range.begin - start, {range.size()}));
  }));
  if (!counts) TROUPE_RETURN_IF_ERROR(options_.kernels->Fill(0, sums));
  return comm::AllReduce(comm::ReduceOp::kSum, std::move(sums));
}

absl::Status BucketUpdates::Update(int bucket, const nn::Tensor& scalars) {
  if (IsUpdated(bucket)) return absl::OkStatus();
  const BucketArenas::Place& place = arenas_.PlaceOf(bucket);
  nn::ParameterArena& arena = arenas_.ArenaOf(bucket);
  const nn::QueueScope scope(*options_.kernels, options_.queue);
  const nn::Tensor grads = arena.OwnedGrads(place.k);
  const std::int64_t start = arena.Owned(place.k).begin;
  TROUPE_RETURN_IF_ERROR(ForEachLeft(place, [&](const nn::ArenaRange& range) {
    return parts_[place.arena].optimizer->UpdateRange(
        *options_.kernels, scalars, arena, range,
        grads.FlatView(range.begin - start, {range.size()}));
  }));
  arena.ReleaseGrads(place.k);
  return absl::OkStatus();
}

comm::Collective BucketUpdates::GatherValues(int bucket) const {
  const BucketArenas::Place& place = arenas_.PlaceOf(bucket);
  return comm::AllGather(arenas_.OwnedValues(bucket),
                         arenas_.ArenaOf(bucket).BucketValues(place.k));
}

comm::Collective BucketUpdates::ReduceUpdate(int bucket) const {
  const BucketArenas::Place& place = arenas_.PlaceOf(bucket);
  return comm::ReduceUpdate(comm::ReduceOp::kSum, arenas_.Grads(bucket),
                            parts_[place.arena].updates[place.k]);
}

}  // namespace troupe::actors
