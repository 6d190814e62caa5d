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

// Limit on the buckets of an arena that keep tails. Each block that has moved
// is a mapping of its own, of which the system allows 65,530.
constexpr int kTailBucketsMax = 512;

std::size_t PageBytes() {
  static const std::size_t page = sysconf(_SC_PAGESIZE);
  return page;
}

char* RoundDown(char* at, std::size_t step) {
  return at - reinterpret_cast<std::uintptr_t>(at) % step;
}

char* RoundUp(char* at, std::size_t step) {
  return RoundDown(at + step - 1, step);
}

}  // namespace

ReleasedValues::ReleasedValues(const ParameterArena& arena, bool poisons,
                               const SharePages& share)
    : arena_(arena), poisons_(poisons), released_(arena.num_buckets()) {
  for (int k = 0; k < arena.num_buckets(); ++k) all_ += BytesOf(k);
  held_ = all_;
  if (!share || arena.owners() == 1) return;
  const std::vector<absl::Span<char>> pages = PagesOfSlices();
  if (!pages.empty()) shared_ = share(pages);
}

std::vector<absl::Span<char>> ReleasedValues::PagesOfSlices() const {
  const Tensor& values = arena_.values();
  char* const begin = static_cast<char*>(values.raw());
  char* const end = begin + values.bytes();
  std::vector<absl::Span<char>> pages;
  for (int k = 0; k < arena_.num_buckets(); ++k) {
    const Tensor owned = arena_.View(values, arena_.Owned(k));
    char* const at = static_cast<char*>(owned.raw());
    // Slices of that length never have pages in common, as those of another
    // owner lie between them.
    if (owned.bytes() < PageBytes()) continue;
    char* const first = RoundDown(at, PageBytes());
    char* const last = RoundUp(at + owned.bytes(), PageBytes());
    // Others use the memory around the arena.
    if (first < begin || last > end) continue;
    pages.emplace_back(first, static_cast<std::size_t>(last - first));
  }
  return pages;
}

std::size_t ReleasedValues::BytesOf(int bucket) const {
  return (arena_.range(bucket).size() - arena_.Owned(bucket).size()) *
         SizeOf(arena_.values().dtype());
}

void ReleasedValues::Hold(int bucket) {
  if (!released_[bucket]) return;
  released_[bucket] = false;
  held_ += BytesOf(bucket);
  const ArenaRange range = arena_.range(bucket), owned = arena_.Owned(bucket);
  HoldRange({range.begin, owned.begin});
  HoldRange({owned.end, range.end});
  most_held_ = std::max(most_held_, std::min(all_, held_ + pools_->bytes()));
}

void ReleasedValues::Release(int bucket) {
  if (released_[bucket]) return;
  released_[bucket] = true;
  held_ -= BytesOf(bucket);
  const ArenaRange range = arena_.range(bucket), owned = arena_.Owned(bucket);
  ReleaseRange({range.begin, owned.begin});
  ReleaseRange({owned.end, range.end});
}

template <typename Each>
void ReleasedValues::ForEachBlock(char* begin, char* end, const Each& each) {
  const std::size_t tail = pools_->tails.block_bytes();
  const bool has_tails = arena_.num_buckets() <= kTailBucketsMax;
  char* at = RoundUp(begin, has_tails ? tail : kBlock);
  while (at < end) {
    const auto left = static_cast<std::size_t>(end - at);
    if (at == RoundDown(at, kBlock) && left >= kBlock) {
      each(at, pools_->blocks);
      at += kBlock;
    } else if (has_tails && left >= tail) {
      each(at, pools_->tails);
      at += tail;
    } else {
      return;
    }
  }
}

void ReleasedValues::HoldRange(const ArenaRange& range) {
  if (range.size() == 0) return;
  const Tensor elems = arena_.View(arena_.values(), range);
  char* const begin = static_cast<char*>(elems.raw());
  ForEachBlock(begin, begin + elems.bytes(), [](char* at, PagePool& pool) {
    // The range gets new pages then; those of the pool would come on top.
    if (pool.bytes() > 0 && !pool.Take(at)) pool.Clear();
  });
}

void ReleasedValues::ReleaseRange(const ArenaRange& range) {
  if (range.size() == 0) return;
  const Tensor elems = arena_.View(arena_.values(), range);
  const std::size_t page = PageBytes();
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
  char* rest = begin;
  // Failures leave the memory as it is, which costs memory alone.
  const auto give_back_until = [&rest](char* at) {
    if (at > rest) (void)madvise(rest, at - rest, MADV_DONTNEED);
  };
  // An arena begins with all values, of which no memory is kept.
  if (most_held_ > 0) {
    ForEachBlock(begin, end, [&](char* at, PagePool& pool) {
      if (!pool.Keep(at)) return;
      give_back_until(at);
      rest = at + pool.block_bytes();
    });
  }
  give_back_until(end);
}

}  // namespace troupe::nn
