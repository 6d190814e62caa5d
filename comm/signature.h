// What must be equal among the ranks that start one collective, in one word, so
// that ranks compare it without locks, and send it along.
//
//   std::uint64_t mine = Pack(AllReduce(ReduceOp::kSum, range));
//   if (mine != theirs) Complain(Unpack(mine), Unpack(theirs));
//
// The word is exact, not a hash: kind, op, dtype, root and the count that all
// ranks have alike (Collective::counted()). Of an all_to_all with unequal parts
// it holds that these are unequal, and no count: each pair compares its own.

#ifndef COMM_SIGNATURE_H_
#define COMM_SIGNATURE_H_

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"

namespace troupe::comm::internal {

// Elements of a range must be fewer.
inline constexpr int kCountBits = 40;
inline constexpr std::int64_t kCountMax = std::int64_t{1} << kCountBits;

// Where the other fields begin, above the count.
inline constexpr int kRootAt = kCountBits, kDTypeAt = 50, kOpAt = 54,
                     kKindAt = 58, kByCountsAt = 63, kEnd = 64;
// Roots must be fewer.
inline constexpr int kRootsMax = 1 << (kDTypeAt - kRootAt);

// A field that outgrows its bits would make unlike collectives look alike.
static_assert(static_cast<int>(CollectiveKind::kAllToAll) <
              1 << (kByCountsAt - kKindAt));
static_assert(static_cast<int>(ReduceOp::kBxor) < 1 << (kKindAt - kOpAt));
static_assert(static_cast<int>(nn::DType::kU8) < 1 << (kOpAt - kDTypeAt));

// `collective` has passed CheckCollective(), and has fewer than kCountMax
// elements, in a group of at most kRootsMax ranks.
inline std::uint64_t Pack(const Collective& collective) {
  const auto at = [](auto field, int bit) {
    return static_cast<std::uint64_t>(field) << bit;
  };
  const std::uint64_t kind = at(collective.kind, kKindAt);
  std::uint64_t choice = 0;
  switch (collective.kind) {
    case CollectiveKind::kBarrier:
      return kind;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceUpdate:
    case CollectiveKind::kReduceScatter:
      choice = at(collective.op, kOpAt);
      break;
    case CollectiveKind::kReduce:
      choice = at(collective.op, kOpAt) | at(collective.root, kRootAt);
      break;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      choice = at(collective.root, kRootAt);
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      break;
  }
  const nn::Tensor& counted = collective.counted();
  const std::uint64_t count =
      collective.by_counts() ? at(1, kByCountsAt) : at(counted.numel(), 0);
  return kind | choice | at(counted.dtype(), kDTypeAt) | count;
}

// The bits from `begin` up to, but without, `end`.
constexpr std::uint64_t FieldOf(std::uint64_t signature, int begin, int end) {
  return (signature >> begin) & ((std::uint64_t{1} << (end - begin)) - 1);
}
inline CollectiveKind KindOf(std::uint64_t signature) {
  return static_cast<CollectiveKind>(FieldOf(signature, kKindAt, kByCountsAt));
}
inline bool ByCounts(std::uint64_t signature) {
  return FieldOf(signature, kByCountsAt, kEnd) != 0;
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
// Elements of Collective::counted(); 0 by counts.
inline std::int64_t CountOf(std::uint64_t signature) {
  return static_cast<std::int64_t>(FieldOf(signature, 0, kCountBits));
}

// Whether some collective has this signature: of words from elsewhere.
inline bool IsSignature(std::uint64_t word) {
  return KindOf(word) <= CollectiveKind::kAllToAll &&
         OpOf(word) <= ReduceOp::kBxor && DTypeOf(word) <= nn::DType::kU8;
}

// A collective on meta tensors of the same text, for messages.
Collective Unpack(std::uint64_t signature);

}  // namespace troupe::comm::internal

#endif  // COMM_SIGNATURE_H_
