// Makes one collective of any kind for all ranks of a group, with seeded inputs
// and the result that each rank must get. Plain loops compute that result from
// the collective's definition.
//
//   Move move = MakeMove({CollectiveKind::kGather, /*size=*/3}, allocator);
//   ranks[r]->RunInline(move.collectives[r], kTimeout);         // on each rank
//   ExpectMoved(move);

#ifndef TESTS_COMM_MOVES_H_
#define TESTS_COMM_MOVES_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

struct MoveSpec {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int size = 1;
  std::int64_t count = 63;  // elements per rank, `c` in comm/flow.h
  nn::DType dtype = nn::DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  bool in_place = false;
  // Whether an all_to_all has parts of unequal sizes, some of them empty.
  bool by_counts = false;
};

std::ostream& operator<<(std::ostream& out, const MoveSpec& spec);

// All kinds that move data, except reduce_update.
inline constexpr CollectiveKind kMovingKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
    CollectiveKind::kReduce,    CollectiveKind::kAllGather,
    CollectiveKind::kGather,    CollectiveKind::kScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kReduceScatter};

// Returns whether the combination is valid: the dtype supports the op, and an
// all_to_all is not in place.
bool Exists(const MoveSpec& spec);

// A collective for each rank and its expected result; all vectors are indexed
// by rank.
struct Move {
  MoveSpec spec;
  std::vector<Collective> collectives;
  std::vector<nn::Tensor> expected;  // undefined for a rank without a result
  // Copies of the inputs; undefined where the collective may overwrite them.
  std::vector<nn::Tensor> given;
};

Move MakeMove(const MoveSpec& spec, nn::Allocator& allocator);

// Makes a move of each kind with each count, both in place and not (for
// all_to_all: both with unequal and with equal parts). Dtype, op and root vary
// from move to move.
std::vector<Move> MovesOf(int size, absl::Span<const std::int64_t> counts,
                          nn::Allocator& allocator);

// Expects that rank `rank` has its result, and that its input is unchanged.
void ExpectMovedTo(const Move& move, int rank);
// Expects the same of every rank.
void ExpectMoved(const Move& move);

}  // namespace troupe::comm

#endif  // TESTS_COMM_MOVES_H_
