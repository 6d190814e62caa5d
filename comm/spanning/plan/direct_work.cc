#include "comm/spanning/plan/direct_work.h"

#include <algorithm>

namespace troupe::comm::internal {
namespace {

// Number of bytes that a thread processes at a time; others may take the next
// part.
constexpr std::int64_t kPartBytes = 256 << 10;
// Smaller for an update, which reads and writes more than the sum; the sum
// stays in a cache.
constexpr std::int64_t kUpdateBytes = 64 << 10;
// Shares begin at cache lines, as ranges do.
constexpr std::int64_t kLineElements = 64;

std::int64_t RoundUp(std::int64_t elements) {
  return (elements + kLineElements - 1) / kLineElements * kLineElements;
}

}  // namespace

DirectWork::DirectWork(const GroupLayout& layout, const TransferPlan& plan,
                       std::size_t element_bytes, bool updates) {
  const std::int64_t self = layout.self();
  const std::int64_t step = (updates ? kUpdateBytes : kPartBytes) /
                            static_cast<std::int64_t>(element_bytes);
  for (int b = 0; b < plan.blocks(); ++b) {
    const TransferPlan::PlannedBlock& block = plan.block(b);
    const std::int64_t count = block.block.count;
    if (!block.wants[self]) continue;
    if (updates || block.source != TransferPlan::kTree ||
        block.block.to != Block::kAll) {
      Cut(b, 0, count, step);
      continue;
    }
    const std::int64_t share =
        RoundUp((count + layout.members() - 1) / layout.members());
    Cut(b, std::min(self * share, count), std::min((self + 1) * share, count),
        step);
  }
  left_ = parts_.size();
}

void DirectWork::Cut(int block, std::int64_t begin, std::int64_t end,
                     std::int64_t step) {
  for (; begin < end; begin += step) {
    parts_.push_back({block, begin, std::min(step, end - begin),
                      static_cast<int>(parts_.size())});
  }
}

bool DirectWork::Claim(Part* part) {
  if (!claimable()) return false;
  *part = parts_[next_++];
  return true;
}

}  // namespace troupe::comm::internal
