#include "nn/arena/bucket_gradients.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/arena/first_fill.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn {

absl::Status BucketGradients::Init(const Options& options,
                                   std::vector<ArenaRange> buckets,
                                   const OwnedSlices& owned) {
  options_ = options;
  owned_ = owned;
  for (const ArenaRange& range : buckets) {
    largest_ = std::max(largest_, range.size());
    buckets_.push_back({range, Tensor(), {}});
  }
  if (options.way == Way::kAll) {
    const std::int64_t elems = buckets.empty() ? 0 : buckets.back().end;
    TROUPE_ASSIGN_OR_RETURN(all_, Zeros(elems, "gradients", options));
    for (Bucket& bucket : buckets_) {
      bucket.held = all_.FlatView(bucket.range.begin, {bucket.range.size()});
    }
    return absl::OkStatus();
  }
  if (slices()) {
    TROUPE_CHECK(options.kernels != nullptr, "slices are copied by kernels");
    const std::int64_t elems = buckets.empty() ? 0 : buckets.back().end;
    TROUPE_ASSIGN_OR_RETURN(
        kept_, Zeros(elems / owned.owners(), "slices of gradients", options));
  }
  if (!options.ahead) return absl::OkStatus();
  // Most buckets of a large model are about as large as the largest.
  TROUPE_ASSIGN_OR_RETURN(
      Tensor block,
      Zeros(largest_, "gradients of the largest bucket", options));
  free_.push_back({std::move(block), base::Event()});
  ++blocks_;
  return absl::OkStatus();
}

void BucketGradients::BeginStep() {
  for (Bucket& bucket : buckets_) {
    for (Tensor& block : bucket.detached) {
      free_.push_back({std::move(block), base::Event()});
    }
    bucket.detached.clear();
  }
}

absl::StatusOr<Tensor> BucketGradients::Zeros(std::int64_t elems,
                                              absl::string_view what,
                                              const Options& options) {
  absl::StatusOr<Tensor> zeros =
      Tensor::Create({elems}, options.dtype, *options.allocator);
  if (!zeros.ok()) {
    return base::WithMessage(
        zeros.status(), absl::StrCat(what, ": ", zeros.status().message()));
  }
  if (zeros->host_accessible()) {
    FillZeros(options.threads, *zeros);
  } else if (elems > 0 && options.kernels != nullptr) {
    TROUPE_RETURN_IF_ERROR(options.kernels->Fill(0.0, *zeros));
  } else if (elems > 0) {
    std::memset(zeros->raw(), 0, zeros->bytes());
  }
  return zeros;
}

absl::StatusOr<bool> BucketGradients::Hold(int bucket) {
  if (IsHeld(bucket)) return false;
  TROUPE_ASSIGN_OR_RETURN(buckets_[bucket].held,
                          slices() ? TakeOfLargest() : Take(bucket));
  return true;
}

// Takes the smallest block that is large enough, but none of more than twice
// the size: a bucket that needs that block would have to allocate another.
absl::StatusOr<Tensor> BucketGradients::Take(int bucket) {
  const std::int64_t elems = buckets_[bucket].range.size();
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const std::int64_t size = it->memory.numel();
    if (size < elems || size > 2 * elems) continue;
    if (best == free_.end() || size < best->memory.numel()) best = it;
  }
  if (best == free_.end()) {
    absl::StatusOr<Tensor> block =
        Tensor::Create({elems}, options_.dtype, *options_.allocator);
    if (block.ok()) return block;
    return base::WithMessage(block.status(),
                             absl::StrCat("gradients of bucket ", bucket, ": ",
                                          block.status().message()));
  }
  Tensor block = std::move(best->memory);
  free_.erase(best);
  return block;
}

absl::StatusOr<Tensor> BucketGradients::TakeOfLargest() {
  const bool queued = options_.kernels->queues() != nullptr;
  if (free_.empty() || (queued && blocks_ < 2)) {
    ++blocks_;
    return Zeros(largest_, "gradients of one bucket", options_);
  }
  // The host's caches have the one that was freed last. On a device with queues
  // the one that was freed first is written soonest.
  const auto taken = queued ? free_.begin() : free_.end() - 1;
  const Block block = std::move(*taken);
  free_.erase(taken);
  Wait(*options_.kernels, Queue::kCompute, block.free);
  return block.memory;
}

void BucketGradients::Release(int bucket) {
  free_.push_back(
      {std::exchange(buckets_[bucket].held, Tensor()), base::Event()});
}

Tensor BucketGradients::Of(int bucket) const {
  TROUPE_CHECK(IsHeld(bucket), "the bucket's gradients are held");
  return buckets_[bucket].held.FlatView(0, {buckets_[bucket].range.size()});
}

void BucketGradients::Detach(int bucket) {
  TROUPE_CHECK(slices() && IsHeld(bucket), "the gradients become a slice");
  buckets_[bucket].detached.push_back(
      std::exchange(buckets_[bucket].held, Tensor()));
}

Tensor BucketGradients::Detached(int bucket) const {
  const Bucket& from = buckets_[bucket];
  return from.detached.empty()
             ? Tensor()
             : from.detached.front().FlatView(0, {from.range.size()});
}

Tensor BucketGradients::SliceOf(int bucket, const Tensor& block) const {
  const ArenaRange owned = owned_.Of(bucket);
  return block.FlatView(owned.begin - buckets_[bucket].range.begin,
                        {owned.size()});
}

absl::Status BucketGradients::KeepSlice(int bucket, bool adds, Queue queue) {
  std::vector<Tensor>& detached = buckets_[bucket].detached;
  TROUPE_CHECK(!detached.empty(), "a slice is kept once it is reduced");
  const Tensor slice = SliceOf(bucket, detached.front());
  Tensor kept = Owned(bucket);
  Kernels& kernels = *options_.kernels;
  {
    const QueueScope scope(kernels, queue);
    TROUPE_RETURN_IF_ERROR(adds ? kernels.Add(kept, slice, kept)
                                : kernels.Copy(slice, kept));
  }
  free_.push_back({std::move(detached.front()), Record(kernels, queue)});
  detached.erase(detached.begin());
  return absl::OkStatus();
}

Tensor BucketGradients::Owned(int bucket) const {
  if (!slices()) return SliceOf(bucket, Of(bucket));
  const ArenaRange owned = owned_.Of(bucket);
  return kept_.FlatView(owned_.PlaceOf(owned.begin), {owned.size()});
}

std::size_t BucketGradients::lasting_bytes() const {
  return (all_.defined() ? all_.bytes() : 0) +
         (kept_.defined() ? kept_.bytes() : 0);
}

}  // namespace troupe::nn
