// The properties of each kind of collective, as one row of data. Collectives
// are printed, checked, signed, cut into blocks and handed to NCCL by these
// rows: a kind needs its enumerator and constructor (communicator.h) and a row
// here. NCCL sends its blocks from rank to rank, or makes one call if the kind
// has a row in nccl/nccl_calls.cc. A kind that moves blocks as no other does
// also needs their flow (flow.h), and a column here that tells it from the
// others.
//
//   const CollectiveRule& rule = RuleOf(CollectiveKind::kReduceScatter);
//   rule.name;        // "reduce_scatter"
//   rule.gives;       // Participants::kAll
//   rule.input;       // Extent::kBlockPerRank: n c elements
//   rule.has_root();  // false
//
// RuleOf() is the address of a constant, and all functions take constant time:
// executors use them for each chunk.

#ifndef COMM_COLLECTIVE_KINDS_H_
#define COMM_COLLECTIVE_KINDS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "comm/communicator.h"

namespace troupe::comm {

// Ranks that contribute to a collective, or that receive from it.
enum class Participants { kNone, kAll, kRoot };

// Length of a rank's input or range. A block has c elements (CollectiveKind).
enum class Extent { kNothing, kBlock, kBlockPerRank };

struct CollectiveRule {
  CollectiveKind kind;
  absl::string_view name;  // name in errors and traces
  Participants gives;      // ranks whose input is read
  Extent input;
  Participants gets;  // ranks that receive the result
  Extent range;
  bool reduces;             // whether an op combines the inputs of all ranks
  bool input_may_be_range;  // whether an undefined input stands for the range
  // Whether each rank's ReplicaUpdate receives the result, and the range, which
  // is the input, stays as it is.
  bool updates;

  bool moves_data() const { return gives != Participants::kNone; }
  bool has_root() const {
    return gives == Participants::kRoot || gets == Participants::kRoot;
  }
  // Returns whether the range has c elements on every rank: it is the side that
  // texts and signatures count (Collective::counted()), otherwise the input is.
  bool counts_range() const {
    return gets == Participants::kAll && range == Extent::kBlock;
  }
  // Returns whether the counted side has n c elements.
  bool counts_block_per_rank() const {
    return !counts_range() && input == Extent::kBlockPerRank;
  }
};

namespace internal {
extern const CollectiveRule kCollectiveRules[kCollectiveKinds];
}  // namespace internal

inline const CollectiveRule& RuleOf(CollectiveKind kind) {
  return internal::kCollectiveRules[static_cast<int>(kind)];
}
// Returns all rows, in the order of CollectiveKind.
inline absl::Span<const CollectiveRule> CollectiveRules() {
  return internal::kCollectiveRules;
}

}  // namespace troupe::comm

#endif  // COMM_COLLECTIVE_KINDS_H_
