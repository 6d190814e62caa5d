// What must be equal among the ranks that start one collective, in one word, so
// that ranks compare it without locks; and how its range is cut.
//
//   std::uint64_t mine = Pack(AllReduce(ReduceOp::kSum, range));
//   if (mine != theirs) Complain(Unpack(mine), Unpack(theirs));
//   Cut cut(mine, /*ranks=*/2, /*chunk_bytes=*/32 << 10);
//   cut.BlockBegin(1);                         // rank 1 begins with this chunk
//
// The word is exact, not a hash: kind, op, dtype, root and count.

#ifndef COMM_LOCAL_SIGNATURE_H_
#define COMM_LOCAL_SIGNATURE_H_

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace troupe::comm::internal {

// Elements of a range must be fewer.
inline constexpr std::int64_t kCountMax = std::int64_t{1} << 40;

// Count in bits 0-39, root from 40, dtype from 56, op from 59, kind from 62.
inline std::uint64_t Pack(const Collective& collective) {
  const auto kind = static_cast<std::uint64_t>(collective.kind) << 62;
  if (collective.kind == CollectiveKind::kBarrier) return kind;
  const nn::Tensor& range = collective.range;
  const auto dtype = static_cast<std::uint64_t>(range.dtype()) << 56;
  const auto count = static_cast<std::uint64_t>(range.numel());
  const std::uint64_t choice =
      collective.kind == CollectiveKind::kBroadcast
          ? static_cast<std::uint64_t>(collective.root) << 40
          : static_cast<std::uint64_t>(collective.op) << 59;
  return kind | choice | dtype | count;
}

inline CollectiveKind KindOf(std::uint64_t signature) {
  return static_cast<CollectiveKind>(signature >> 62);
}
inline ReduceOp OpOf(std::uint64_t signature) {
  return static_cast<ReduceOp>((signature >> 59) & 7);
}
inline nn::DType DTypeOf(std::uint64_t signature) {
  return static_cast<nn::DType>((signature >> 56) & 7);
}
inline int RootOf(std::uint64_t signature) {
  return static_cast<int>((signature >> 40) & 0xffff);
}
inline std::int64_t CountOf(std::uint64_t signature) {
  return static_cast<std::int64_t>(signature & (kCountMax - 1));
}

// The collective on a meta tensor, for messages.
Collective Unpack(std::uint64_t signature);

// Chunks of 2^shift elements, the last one shorter; rank r owns the block of
// chunks [BlockBegin(r), BlockBegin(r + 1)): it takes these first.
class Cut {
 public:
  // A collective that moves nothing has no chunks.
  Cut(std::uint64_t signature, int ranks, std::size_t chunk_bytes);

  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t BlockBegin(int rank) const { return chunks_ * rank / ranks_; }
  int blocks_with_chunks() const {
    return chunks_ < static_cast<std::uint64_t>(ranks_)
               ? static_cast<int>(chunks_)
               : ranks_;
  }
  std::int64_t ElementBegin(std::uint64_t chunk) const {
    return static_cast<std::int64_t>(chunk << shift_);
  }
  std::int64_t ElementEnd(std::uint64_t chunk) const {
    const std::int64_t end = ElementBegin(chunk + 1);
    return end < count_ ? end : count_;
  }

 private:
  const std::int64_t count_;
  const int ranks_;
  int shift_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_SIGNATURE_H_
