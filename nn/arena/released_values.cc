#include "nn/arena/released_values.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::nn {
namespace {

constexpr int kPoison = 0xff;

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
}

void ReleasedValues::Release(int bucket) {
  if (released_[bucket]) return;
  released_[bucket] = true;
  held_ -= BytesOf(bucket);
  const ArenaRange range = arena_.range(bucket), owned = arena_.Owned(bucket);
  ReleaseRange({range.begin, owned.begin});
  ReleaseRange({owned.end, range.end});
}

void ReleasedValues::ReleaseRange(const ArenaRange& range) const {
  if (range.size() == 0) return;
  const Tensor elems = arena_.View(arena_.values(), range);
  static const std::uintptr_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(elems.raw());
  const std::uintptr_t end = begin + elems.bytes();
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = end / page * page;
  if (poisons_ || last <= first) {
    std::memset(elems.raw(), kPoison, elems.bytes());
    return;
  }
  std::memset(elems.raw(), kPoison, first - begin);
  std::memset(reinterpret_cast<void*>(last), kPoison, end - last);
  // A failure leaves the memory as it is, which costs memory alone.
  (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace troupe::nn
