#include "nn/arena/released_values.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::nn {
namespace {

constexpr int kPoison = 0xff;
constexpr std::size_t kBlock = PagePool::kBlockBytes;

char* RoundDown(char* at, std::size_t step) {
  return at - reinterpret_cast<std::uintptr_t>(at) % step;
}

char* RoundUp(char* at, std::size_t step) {
  return RoundDown(at + step - 1, step);
}

}  // namespace

ReleasedValues::ReleasedValues(const ParameterArena& arena, bool poisons)
    : arena_(arena), poisons_(poisons), released_(arena.num_buckets()) {
  for (int k = 0; k < arena.num_buckets(); ++k) all_ += BytesOf(k);
  held_ = all_;
}

std::size_t ReleasedValues::BytesOf(int bucket) const {
  return (arena_.range(bucket).size() - arena_.Owned(bucket).size()) *
         SizeOf(arena_.values().dtype());
}

void ReleasedValues::Hold(int bucket) {
  if (!released_[bucket]) return;
  released_[bucket] = false;
  held_ += BytesOf(bucket);
  most_held_ = std::max(most_held_, held_);
  const ArenaRange range = arena_.range(bucket), owned = arena_.Owned(bucket);
  HoldRange({range.begin, owned.begin});
  HoldRange({owned.end, range.end});
}

void ReleasedValues::Release(int bucket) {
  if (released_[bucket]) return;
  released_[bucket] = true;
  held_ -= BytesOf(bucket);
  const ArenaRange range = arena_.range(bucket), owned = arena_.Owned(bucket);
  ReleaseRange({range.begin, owned.begin});
  ReleaseRange({owned.end, range.end});
}

void ReleasedValues::HoldRange(const ArenaRange& range) {
  if (range.size() == 0) return;
  const Tensor elems = arena_.View(arena_.values(), range);
  char* const begin = static_cast<char*>(elems.raw());
  char* const last = RoundDown(begin + elems.bytes(), kBlock);
  char* at = RoundUp(begin, kBlock);
  for (; at < last && pool_->bytes() > 0; at += kBlock) {
    // The range gets new pages then; those of the pool would come on top.
    if (!pool_->Take(at)) return pool_->Clear();
  }
}

void ReleasedValues::ReleaseRange(const ArenaRange& range) {
  if (range.size() == 0) return;
  const Tensor elems = arena_.View(arena_.values(), range);
  static const std::size_t page = sysconf(_SC_PAGESIZE);
  char* const begin = static_cast<char*>(elems.raw());
  char* const end = begin + elems.bytes();
  char* const first = RoundUp(begin, page);
  char* const last = RoundDown(end, page);
  if (poisons_ || last <= first) {
    std::memset(begin, kPoison, elems.bytes());
    return;
  }
  std::memset(begin, kPoison, first - begin);
  std::memset(last, kPoison, end - last);
  ReleasePages(first, last);
}

void ReleasedValues::ReleasePages(char* begin, char* end) {
  char* const first = RoundUp(begin, kBlock);
  char* const last = RoundDown(end, kBlock);
  char* at = first;
  // An arena begins with all values, of which no memory is kept.
  const bool keeps = most_held_ > 0;
  while (keeps && at < last && pool_->Keep(at)) at += kBlock;
  // Failures leave the memory as it is, which costs memory alone.
  if (at <= first) {
    (void)madvise(begin, end - begin, MADV_DONTNEED);
    return;
  }
  if (first > begin) (void)madvise(begin, first - begin, MADV_DONTNEED);
  if (end > at) (void)madvise(at, end - at, MADV_DONTNEED);
}

}  // namespace troupe::nn
