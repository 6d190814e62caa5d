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
inline constexpr int kCountBits = 40;
inline constexpr std::int64_t kCountMax = std::int64_t{1} << kCountBits;

// Where the other fields begin, above the count.
inline constexpr int kRootAt = kCountBits, kDTypeAt = 50, kOpAt = 54,
                     kKindAt = 58, kEnd = 64;
// Roots must be fewer.
inline constexpr int kRootsMax = 1 << (kDTypeAt - kRootAt);

// A field that outgrows its bits would make unlike collectives look alike.
static_assert(static_cast<int>(CollectiveKind::kReduceUpdate) <
              1 << (kEnd - kKindAt));
static_assert(static_cast<int>(ReduceOp::kProduct) < 1 << (kKindAt - kOpAt));
static_assert(static_cast<int>(nn::DType::kU8) < 1 << (kOpAt - kDTypeAt));

inline std::uint64_t Pack(const Collective& collective) {
  const auto at = [](auto field, int bit) {
    return static_cast<std::uint64_t>(field) << bit;
  };
  const std::uint64_t kind = at(collective.kind, kKindAt);
  if (collective.kind == CollectiveKind::kBarrier) return kind;
  const std::uint64_t choice = collective.kind == CollectiveKind::kBroadcast
                                   ? at(collective.root, kRootAt)
                                   : at(collective.op, kOpAt);
  return kind | choice | at(collective.range.dtype(), kDTypeAt) |
         at(collective.range.numel(), 0);
}

// The bits from `begin` up to, but without, `end`.
constexpr std::uint64_t FieldOf(std::uint64_t signature, int begin, int end) {
  return (signature >> begin) & ((std::uint64_t{1} << (end - begin)) - 1);
}
inline CollectiveKind KindOf(std::uint64_t signature) {
  return static_cast<CollectiveKind>(FieldOf(signature, kKindAt, kEnd));
}
inline ReduceOp OpOf(std::uint64_t signature) {
  return static_cast<ReduceOp>(FieldOf(signature, kOpAt, kKindAt));
}
inline nn::DType DTypeOf(std::uint64_t signature) {
  return static_cast<nn::DType>(FieldOf(signature, kDTypeAt, kOpAt));
}
inline int RootOf(std::uint64_t signature) {
  return static_cast<int>(FieldOf(signature, kRootAt, kDTypeAt));
}
inline std::int64_t CountOf(std::uint64_t signature) {
  return static_cast<std::int64_t>(FieldOf(signature, 0, kCountBits));
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
