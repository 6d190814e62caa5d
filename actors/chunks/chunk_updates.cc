// Implements the updates of ChunkParameters: by buckets, and by rows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/chunks/chunk_parameters.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

bool ChunkParameters::AllowsRows() const {
  const pipeline::Plan& plan = *setup_.plan;
  return plan.fuse_updates && plan.mesh.dp() == 1 && plan.micro_batches == 1 &&
         !plan.grad_dtype && !plan.update_needs_all_buckets &&
         setup_.update_queue == nn::Queue::kCompute &&
         setup_.kernels->queues() == nullptr;
}

bool ChunkParameters::UpdatesByRows() const {
  return AllowsRows() && optimizer() != nullptr && optimizer()->IsElementwise();
}

absl::Status ChunkParameters::UpdateRows(const nn::Parameter& parameter,
                                         std::int64_t begin,
                                         const nn::Tensor& grads,
                                         const nn::Tensor& scalars) {
  Part& part = parts_[places_[BucketOf(parameter)].part];
  const std::size_t slot = parameter.index - part.arena->first_index();
  part.updated.resize(part.arena->slots().size());
  part.updated[slot] = true;
  const std::int64_t first =
      part.arena->slots()[slot].begin + begin * (grads.numel() / grads.dim(0));
  return part.optimizer->UpdateRange(*setup_.kernels, scalars, *part.arena,
                                     {first, first + grads.numel()},
                                     grads.FlatView(0, {grads.numel()}));
}

template <typename Each>
absl::Status ChunkParameters::ForEachLeft(const Part& part, int k,
                                          const Each& each) const {
  const nn::ArenaRange bucket = part.arena->range(k);
  const std::vector<nn::ArenaSlot>& slots = part.arena->slots();
  std::int64_t begin = bucket.begin;
  const std::size_t marked =
      std::max(part.updated.size(), part.left_out.size());
  for (std::size_t i = 0; i < marked; ++i) {
    const bool updated = i < part.updated.size() && part.updated[i];
    const bool left_out = i < part.left_out.size() && part.left_out[i];
    if (slots[i].bucket != k || !(updated || left_out)) continue;
    if (begin < slots[i].begin) {
      TROUPE_RETURN_IF_ERROR(each(nn::ArenaRange{begin, slots[i].begin}));
    }
    begin = slots[i].begin + slots[i].parameter->shape.numel();
  }
  return begin < bucket.end ? each(nn::ArenaRange{begin, bucket.end})
                            : absl::OkStatus();
}

void ChunkParameters::LeaveOut(absl::Span<nn::Parameter* const> parameters) {
  for (Part& part : parts_) part.left_out.clear();
  for (const nn::Parameter* parameter : parameters) {
    Part& part = parts_[places_[BucketOf(*parameter)].part];
    part.left_out.resize(part.arena->slots().size());
    part.left_out[parameter->index - part.arena->first_index()] = true;
  }
}

bool ChunkParameters::leaves_out() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return !part.left_out.empty(); });
}

void ChunkParameters::CountLeftOut() {
  for (Part& part : parts_) {
    if (part.left_out.empty() || !part.optimizer->CountsUpdates()) continue;
    part.counts.LeaveOut(part.left_out);
    part.optimizer->SetFirstUpdates(*part.arena, part.counts.first_updates());
  }
}

bool ChunkParameters::IsUpdated(int bucket) const {
  const Place& place = places_[bucket];
  const Part& part = parts_[place.part];
  const std::vector<nn::ArenaSlot>& slots = part.arena->slots();
  bool all = !part.updated.empty();
  for (std::size_t i = 0; all && i < part.updated.size(); ++i) {
    all = slots[i].bucket != place.k || part.updated[i];
  }
  return all;
}

absl::Status ChunkParameters::Update(int bucket, const nn::Tensor& scalars) {
  if (IsUpdated(bucket)) return absl::OkStatus();
  const Place& place = places_[bucket];
  Part& part = parts_[place.part];
  const nn::QueueScope scope(*setup_.kernels, setup_.update_queue);
  const nn::Tensor grads = part.arena->BucketGrads(place.k);
  const std::int64_t start = part.arena->range(place.k).begin;
  TROUPE_RETURN_IF_ERROR(
      ForEachLeft(part, place.k, [&](const nn::ArenaRange& range) {
        return part.optimizer->UpdateRange(
            *setup_.kernels, scalars, *part.arena, range,
            grads.FlatView(range.begin - start, {range.size()}));
      }));
  part.arena->ReleaseGrads(place.k);
  return absl::OkStatus();
}

}  // namespace troupe::actors
