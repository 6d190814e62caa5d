#include "comm/local/signature.h"

#include <algorithm>

namespace troupe::comm::internal {
namespace {

// No finer: handing a chunk to another core costs as much as reducing this.
constexpr std::size_t kChunkBytesMin = 2048;
// What a claim word (group_state.h) can count.
constexpr std::uint64_t kBlockChunksMax = (std::uint64_t{1} << 20) - 1;

int FloorLog2(std::uint64_t n) { return 63 - __builtin_clzll(n); }
int CeilLog2(std::uint64_t n) { return n <= 1 ? 0 : FloorLog2(n - 1) + 1; }

}  // namespace

Collective Unpack(std::uint64_t signature) {
  Collective collective;
  collective.kind = KindOf(signature);
  if (collective.kind == CollectiveKind::kBarrier) return collective;
  collective.op = OpOf(signature);
  collective.root = RootOf(signature);
  collective.range =
      nn::Tensor::Meta({CountOf(signature)}, DTypeOf(signature), nn::Device());
  return collective;
}

Cut::Cut(std::uint64_t signature, int ranks, std::size_t chunk_bytes)
    : count_(CountOf(signature)), ranks_(ranks) {
  // One rank has nothing to reduce; it may have something to update.
  if (count_ == 0 ||
      (ranks == 1 && KindOf(signature) != CollectiveKind::kReduceUpdate)) {
    return;
  }
  const std::uint64_t count = count_;
  const int element_log2 = FloorLog2(nn::SizeOf(DTypeOf(signature)));
  const int least = FloorLog2(kChunkBytesMin) - element_log2;
  const int most = std::max(least, FloorLog2(chunk_bytes) - element_log2);
  // A chunk for each rank, if the range is small.
  shift_ = std::clamp(CeilLog2((count + ranks - 1) / ranks), least, most);
  while ((count >> shift_) / ranks >= kBlockChunksMax) ++shift_;
  chunks_ = (count + (std::uint64_t{1} << shift_) - 1) >> shift_;
}

}  // namespace troupe::comm::internal
