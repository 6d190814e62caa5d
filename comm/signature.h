// All properties of a collective that must be equal on its ranks, in one word,
// so that ranks compare it without locks, and send it to each other.
//
//   std::uint64_t mine = Pack(AllReduce(ReduceOp::kSum, range));
//   if (mine != theirs) Complain(Unpack(mine), Unpack(theirs));
//
// The word is exact, not a hash: kind, op, dtype, root and the count that is
// equal on all ranks (Collective::counted()). For an all_to_all with unequal
// parts it contains a flag and no count: each pair compares its own.

#ifndef COMM_SIGNATURE_H_
#define COMM_SIGNATURE_H_

#include <cstddef>
#include <cstdint>

#include "comm/collective_kinds.h"
#include "comm/communicator.h"

namespace troupe::comm::internal {

// Limit on the elements of a range, which must be fewer.
inline constexpr int kCountBits = 40;
inline constexpr std::int64_t kCountMax = std::int64_t{1} << kCountBits;

// First bit of each of the other fields, above the count.
inline constexpr int kRootAt = kCountBits, kDTypeAt = 50, kOpAt = 54,
                     kKindAt = 58, kByCountsAt = 63, kEnd = 64;
// Limit on roots, which must be smaller.
inline constexpr int kRootsMax = 1 << (kDTypeAt - kRootAt);

// A field that outgrows its bits would make unlike collectives look alike.
static_assert(kCollectiveKinds <= 1 << (kByCountsAt - kKindAt));
static_assert(static_cast<int>(ReduceOp::kBxor) < 1 << (kKindAt - kOpAt));
static_assert(static_cast<int>(nn::DType::kU8) < 1 << (kOpAt - kDTypeAt));

// Returns the signature of `collective`, which has passed CheckCollective(),
// and has fewer than kCountMax elements, in a group of at most kRootsMax ranks.
inline std::uint64_t Pack(const Collective& collective) {
  const auto at = [](auto field, int bit) {
    return static_cast<std::uint64_t>(field) << bit;
  };
  const CollectiveRule& rule = RuleOf(collective.kind);
  const std::uint64_t kind = at(collective.kind, kKindAt);
  if (!rule.moves_data()) return kind;
  const std::uint64_t op = rule.reduces ? at(collective.op, kOpAt) : 0;
  const std::uint64_t root = rule.has_root() ? at(collective.root, kRootAt) : 0;
  const nn::Tensor& counted = collective.counted();
  const std::uint64_t count =
      collective.by_counts() ? at(1, kByCountsAt) : at(counted.numel(), 0);
  return kind | op | root | at(counted.dtype(), kDTypeAt) | count;
}

// Returns the bits from `begin` up to, but without, `end`.
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
// Returns the number of elements of Collective::counted(); 0 if by counts.
inline std::int64_t CountOf(std::uint64_t signature) {
  return static_cast<std::int64_t>(FieldOf(signature, 0, kCountBits));
}

// Returns whether some collective has this signature. Checks words from other
// processes.
inline bool IsSignature(std::uint64_t word) {
  return static_cast<int>(KindOf(word)) < kCollectiveKinds &&
         OpOf(word) <= ReduceOp::kBxor && DTypeOf(word) <= nn::DType::kU8;
}

// Returns a collective on meta tensors with the same text, for messages.
Collective Unpack(std::uint64_t signature);

}  // namespace troupe::comm::internal

#endif  // COMM_SIGNATURE_H_
