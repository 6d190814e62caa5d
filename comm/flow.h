// What moves where in a collective, whatever carries it: a list of blocks, each
// computed from one rank's input or from the tree over all, for one rank's
// output or for all.
//
//   TROUPE_ASSIGN_OR_RETURN(std::vector<Block> blocks,
//                           FlowOf({&reduce_scatter_of_rank_0, nullptr}));
//   // from all to 0: 8 elements at 0; from all to 1: 8 elements at 8
//
// An executor carries blocks out: the local group in shared memory
// (local/local_group.h), the spanning group by frames (spanning/).
//
// Shapes, with n ranks and c elements a rank; `input` is what a rank gives,
// `range` what it gets:
//
//     kind             input       range      blocks
//     all_reduce       c           c          1: all -> all
//     reduce           c           c at root  1: all -> root
//     broadcast        c at root   c          1: root -> all
//     all_gather       c           n c        n: r -> all, to r c
//     gather           c           n c, root  n: r -> root, to r c
//     scatter          n c, root   c          n: root -> r, from r c
//     reduce_scatter   n c         c          n: all -> r, from r c
//     all_to_all       n c         n c        n n: r -> s, from s c, to r c
//     all_to_all (v)   sum sent    sum recvd  n n: r -> s, by the counts
//     barrier          -           -          none

#ifndef COMM_FLOW_H_
#define COMM_FLOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"

namespace troupe::comm {

struct Block {
  static constexpr int kAll = -1;

  int from = kAll;  // the rank whose input it is; kAll: the tree over all
  int to = kAll;    // the rank whose output it is for
  std::int64_t count = 0;    // elements
  std::int64_t from_at = 0;  // where it begins in the input(s), in elements
  std::int64_t to_at = 0;    // ... in the output(s)
};

// All blocks of a collective in which every rank gives or gets alike (each but
// the unequal all_to_all), one by one, each of `count` elements. By `from`,
// then by `to`. The tree over one rank is that rank's input.
class EvenFlow {
 public:
  // `count`: c.
  EvenFlow(CollectiveKind kind, int root, std::int64_t count, int ranks)
      : kind_(kind),
        root_(root),
        ranks_(ranks),
        count_(count),
        blocks_(BlocksOf(kind, ranks)) {}

  std::int64_t blocks() const { return blocks_; }
  // The elements of each block: c.
  std::int64_t count() const { return count_; }
  Block At(std::int64_t i) const;

 private:
  static std::int64_t BlocksOf(CollectiveKind kind, int ranks) {
    switch (kind) {
      case CollectiveKind::kBarrier:
        return 0;
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduceUpdate:
      case CollectiveKind::kReduce:
      case CollectiveKind::kBroadcast:
        return 1;
      case CollectiveKind::kAllGather:
      case CollectiveKind::kGather:
      case CollectiveKind::kScatter:
      case CollectiveKind::kReduceScatter:
        return ranks;
      case CollectiveKind::kAllToAll:
        break;
    }
    return std::int64_t{ranks} * ranks;
  }

  CollectiveKind kind_;
  int root_;
  int ranks_;
  std::int64_t count_;
  std::int64_t blocks_;
};

// The blocks in which the known ranks take part. `ranks` has one entry for each
// rank of the group, null where it is not known here (it lives elsewhere); one
// at least is known, and all have passed CheckCollective() and have the same
// signature (signature.h). Blocks without elements are left out. Of an unequal
// all_to_all, from_at is 0 where `from` is not known, to_at where `to` is not.
//   kFailedPrecondition: two known ranks do not fit together (all_to_all,
//     unequal: what one sends to another is not what that one expects).
absl::StatusOr<std::vector<Block>> FlowOf(
    absl::Span<const Collective* const> ranks);

// What FlowOf() says of a pair that does not fit, whoever finds it.
absl::Status UnequalCounts(int from, std::int64_t sent, int to,
                           std::int64_t expected);

}  // namespace troupe::comm

#endif  // COMM_FLOW_H_
