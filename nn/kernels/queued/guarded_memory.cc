#include "nn/kernels/queued/guarded_memory.h"

#include <sys/mman.h>

#include "base/check.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t RoundUp(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

char* Map(std::size_t bytes) {
  void* const region = mmap(nullptr, bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            /*fd=*/-1, /*offset=*/0);
  TROUPE_CHECK(region != MAP_FAILED, "there are addresses for guarded memory");
  return static_cast<char*>(region);
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes_max)
    : bytes_max_(RoundUp(bytes_max, kPage)), begin_(Map(bytes_max_)) {}

GuardedMemory::~GuardedMemory() { munmap(begin_, bytes_max_); }

void* GuardedMemory::Allocate(std::size_t bytes) {
  const std::size_t rounded = RoundUp(bytes, 64);
  absl::MutexLock lock(&mutex_);
  std::vector<void*>& same = freed_[rounded];
  if (!same.empty()) {
    void* const block = same.back();
    same.pop_back();
    taken_ += rounded;
    return block;
  }
  if (rounded < bytes || rounded > bytes_max_ - used_) return nullptr;
  char* const block = begin_ + used_;
  used_ += rounded;
  taken_ += rounded;
  // While opened, memory is accessible up to used_.
  if (opened_ > 0) Protect(PROT_READ | PROT_WRITE);
  return block;
}

void GuardedMemory::Free(void* block, std::size_t bytes) {
  absl::MutexLock lock(&mutex_);
  freed_[RoundUp(bytes, 64)].push_back(block);
  taken_ -= RoundUp(bytes, 64);
}

std::optional<std::size_t> GuardedMemory::bytes_free() const {
  absl::MutexLock lock(&mutex_);
  return bytes_max_ - taken_;
}

void GuardedMemory::Open() {
  absl::MutexLock lock(&mutex_);
  if (opened_++ == 0) Protect(PROT_READ | PROT_WRITE);
}

void GuardedMemory::Close() {
  absl::MutexLock lock(&mutex_);
  if (--opened_ == 0) Protect(PROT_NONE);
}

void GuardedMemory::Protect(int rights) {
  if (used_ == 0) return;
  TROUPE_CHECK(mprotect(begin_, RoundUp(used_, kPage), rights) == 0,
               "the rights of guarded memory can be changed");
}

}  // namespace troupe::nn
