#include "comm/spanning/frames/staging.h"

#include <algorithm>
#include <new>

namespace troupe::comm::internal {
namespace {

constexpr std::align_val_t kAlignment{64};
// Sizes are rounded up to powers of two from here, so that buffers can be
// reused.
constexpr std::size_t kBytesMin = 256;

std::size_t RoundedUp(std::size_t bytes) {
  std::size_t rounded = kBytesMin;
  while (rounded < bytes) rounded *= 2;
  return rounded;
}

}  // namespace

void StagingBuffer::Free::operator()(char* data) const {
  ::operator delete(data, kAlignment);
}

StagingBuffer::~StagingBuffer() {
  if (pool_ != nullptr) pool_->GiveBack(bytes_, std::move(data_));
}

StagingBuffer StagingPool::Take(std::size_t bytes) {
  StagingBuffer buffer;
  buffer.pool_ = this;
  buffer.bytes_ = RoundedUp(bytes);
  {
    absl::MutexLock lock(&mutex_);
    const auto fits = std::find_if(
        kept_.rbegin(), kept_.rend(),
        [&](const Kept& kept) { return kept.bytes == buffer.bytes_; });
    if (fits != kept_.rend()) {
      buffer.data_ = std::move(fits->data);
      kept_bytes_ -= buffer.bytes_;
      std::swap(*fits, kept_.back());
      kept_.pop_back();
      return buffer;
    }
  }
  buffer.data_.reset(
      static_cast<char*>(::operator new(buffer.bytes_, kAlignment)));
  return buffer;
}

void StagingPool::GiveBack(std::size_t bytes, StagingBuffer::Memory data) {
  absl::MutexLock lock(&mutex_);
  if (kept_bytes_ + bytes > kept_bytes_max_) return;
  kept_bytes_ += bytes;
  kept_.push_back({bytes, std::move(data)});
}

}  // namespace troupe::comm::internal
