#include "actors/chunks/use_marks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<UseMarks>> UseMarks::Create(
    const ChunkParameters& parameters, nn::Kernels& kernels) {
  std::unique_ptr<UseMarks> marks(new UseMarks(kernels));
  marks->buckets_.resize(parameters.num_buckets());
  std::size_t count = 0;
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    count += parameters.arena(i).slots().size();
    for (const nn::ArenaSlot& slot : parameters.arena(i).slots()) {
      if (slot.bucket == nn::kNoBucket) continue;
      marks->buckets_[parameters.BucketOf(*slot.parameter)].push_back(
          slot.parameter);
    }
  }
  marks->uses_.resize(count, Use::kNone);
  TROUPE_ASSIGN_OR_RETURN(
      marks->marks_, nn::Tensor::Create({static_cast<std::int64_t>(count)},
                                        nn::DType::kF32, kernels.allocator()));
  return marks;
}

void UseMarks::Clear() {
  uses_.assign(uses_.size(), Use::kNone);
  closed_ = false;
}

void UseMarks::Close() {
  if (closed_) return;
  for (int k = 0; k < static_cast<int>(buckets_.size()); ++k) CompleteBucket(k);
  closed_ = true;
}

bool UseMarks::AreAll(const std::vector<nn::Parameter*>& read) const {
  std::vector<bool> is_read(uses_.size());
  for (const nn::Parameter* parameter : read) is_read[parameter->index] = true;
  for (const auto& bucket : buckets_) {
    for (const nn::Parameter* parameter : bucket) {
      if (!is_read[parameter->index]) return false;
    }
  }
  return true;
}

void UseMarks::CompleteBucket(int bucket) {
  if (closed_) return;
  for (const nn::Parameter* parameter : buckets_[bucket]) {
    Use& use = uses_[parameter->index];
    if (use == Use::kNone) {
      use = parameter->grad_written ? Use::kUsed : Use::kZeros;
    }
  }
}

std::vector<nn::Parameter*> UseMarks::Without(bool here) const {
  std::vector<nn::Parameter*> unused;
  for (const auto& bucket : buckets_) {
    for (nn::Parameter* parameter : bucket) {
      const Use use = uses_[parameter->index];
      if (use == Use::kUsed || (use == Use::kElsewhere && !here)) continue;
      unused.push_back(parameter);
    }
  }
  return unused;
}

absl::StatusOr<nn::Tensor> UseMarks::Publish() {
  // A copy to a device may still read the memory of the last call.
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor own,
                          nn::Tensor::Create(marks_.shape(), marks_.dtype(),
                                             nn::HostAllocator(kernels_)));
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    own.data<float>()[i] = uses_[i] >= Use::kElsewhere ? 1 : 0;
  }
  nn::Wait(kernels_, nn::Queue::kCompute, summed_);
  nn::CopyBytes(kernels_, nn::Queue::kCompute, own, marks_);
  ready_ = nn::Record(kernels_, nn::Queue::kCompute);
  return marks_;
}

absl::Status UseMarks::TakeSum() {
  nn::Wait(kernels_, nn::Queue::kReadBack, summed_);
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor sum,
      nn::CopyToHost(kernels_, nn::Queue::kReadBack, marks_));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(kernels_, nn::Record(kernels_, nn::Queue::kReadBack)));
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (sum.data<float>()[i] > 0)
      uses_[i] = std::max(uses_[i], Use::kElsewhere);
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
