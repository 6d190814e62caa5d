// The data movement of a collective, independent of the transport: a list of
// blocks, each computed from one rank's input or from the tree over all, for
// one rank's output or for all.
//
//   TROUPE_ASSIGN_OR_RETURN(std::vector<Block> blocks,
//                           FlowOf({&reduce_scatter_of_rank_0, nullptr}));
//   // from all to 0: 8 elements at 0; from all to 1: 8 elements at 8
//
// Three executors carry blocks out: the local group in shared memory
// (local/local_group.h), the spanning group by frames (spanning/), and ranks on
// GPUs by sends and receives of NCCL if that lacks the kind
// (nccl/nccl_calls.h).
//
// With n ranks, a rank's input and range have one block of c elements, or n
// (collective_kinds.h; the table of CollectiveKind shows all kinds):
//
//     from     `all` if the kind reduces; otherwise the root or each rank r,
//              whichever gives
//     to       each rank s if the input has n blocks, of which s gets block s;
//              otherwise the root or `all`, whichever gets
//     from_at  s c if the input has n blocks
//     to_at    r c if the range has n blocks
//
// There is one block for each r and each s that occurs. An all_to_all with
// unequal parts moves a block from each rank to each, by the counts.

#ifndef COMM_FLOW_H_
#define COMM_FLOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/collective_kinds.h"
#include "comm/communicator.h"

namespace troupe::comm {

struct Block {
  static constexpr int kAll = -1;

  int from = kAll;         // rank whose input is read; kAll: the tree over all
  int to = kAll;           // rank whose output is written
  std::int64_t count = 0;  // number of elements
  std::int64_t from_at = 0;  // offset in the input(s), in elements
  std::int64_t to_at = 0;    // offset in the output(s)
};

// Enumerates the blocks of a collective in which all ranks contribute or
// receive equally (any but the unequal all_to_all), each of `count` elements,
// ordered by `from`, then by `to`. The tree over one rank is that rank's input.
class EvenFlow {
 public:
  // `counted` is the length of Collective::counted().
  EvenFlow(CollectiveKind kind, int root, std::int64_t counted, int ranks)
      : rule_(&RuleOf(kind)),
        root_(root),
        ranks_(ranks),
        count_(rule_->counts_block_per_rank() ? counted / ranks : counted),
        blocks_(BlocksOf(*rule_, ranks)) {}

  std::int64_t blocks() const { return blocks_; }
  // Returns the number of elements of each block: c.
  std::int64_t count() const { return count_; }
  Block At(std::int64_t i) const;

 private:
  static std::int64_t BlocksOf(const CollectiveRule& rule, int ranks) {
    if (!rule.moves_data()) return 0;
    const std::int64_t from = rule.range == Extent::kBlockPerRank ? ranks : 1;
    const std::int64_t to = rule.input == Extent::kBlockPerRank ? ranks : 1;
    return from * to;
  }

  const CollectiveRule* rule_;
  int root_;
  int ranks_;
  std::int64_t count_;
  std::int64_t blocks_;
};

// Returns the blocks in which the known ranks take part. `ranks` has one entry
// for each rank of the group, null for one that is not known (it lives in
// another process); at least one is known, and all have passed
// CheckCollective() and have the same signature (signature.h). Blocks without
// elements are left out. In an unequal all_to_all, from_at is 0 if `from` is
// not known, and to_at if `to` is not.
//   kFailedPrecondition: two known ranks do not match (in an unequal
//     all_to_all, one sends another count than the other expects).
absl::StatusOr<std::vector<Block>> FlowOf(
    absl::Span<const Collective* const> ranks);

// Returns the error of FlowOf() for a pair that does not match; executors use
// it too.
absl::Status UnequalCounts(int from, std::int64_t sent, int to,
                           std::int64_t expected);

}  // namespace troupe::comm

#endif  // COMM_FLOW_H_
