#include "comm/local/cut.h"

#include <algorithm>

namespace troupe::comm::internal {
namespace {

// Lower limit on a chunk: passing it to another core costs as much as reducing
// this.
constexpr std::size_t kChunkBytesMin = 2048;
// Limit on the chunks of a share: the width of the count in a claim word
// (group_state.h).
constexpr std::uint64_t kShareChunksMax = (std::uint64_t{1} << 20) - 1;

int FloorLog2(std::uint64_t n) { return 63 - __builtin_clzll(n); }
int CeilLog2(std::uint64_t n) { return n <= 1 ? 0 : FloorLog2(n - 1) + 1; }

}  // namespace

Cut::Cut(std::int64_t elements, std::size_t element_bytes, int ranks,
         std::size_t chunk_bytes)
    : elements_(elements), ranks_(ranks) {
  if (elements == 0) return;
  const std::uint64_t count = elements;
  const int element_log2 = FloorLog2(element_bytes);
  const int least = FloorLog2(kChunkBytesMin) - element_log2;
  const int most = std::max(least, FloorLog2(chunk_bytes) - element_log2);
  // One chunk for each rank, if there is little to move.
  shift_ = std::clamp(CeilLog2((count + ranks - 1) / ranks), least, most);
  while ((count >> shift_) / ranks >= kShareChunksMax) ++shift_;
  chunks_ = (count + (std::uint64_t{1} << shift_) - 1) >> shift_;
}

}  // namespace troupe::comm::internal
