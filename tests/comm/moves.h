// One collective of any kind for all ranks of a group, with seeded inputs, and
// what each rank must get, computed from the definition by plain loops.
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
  std::int64_t count = 63;  // c of comm/flow.h
  nn::DType dtype = nn::DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  bool in_place = false;
  // An all_to_all of unequal parts, some of them empty.
  bool by_counts = false;
};

std::ostream& operator<<(std::ostream& out, const MoveSpec& spec);

// All kinds that move something, but reduce_update.
inline constexpr CollectiveKind kMovingKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
    CollectiveKind::kReduce,    CollectiveKind::kAllGather,
    CollectiveKind::kGather,    CollectiveKind::kScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kReduceScatter};

// Whether there is such a collective: an op that the dtype has, no all_to_all
// in place.
bool Exists(const MoveSpec& spec);

// By rank.
struct Move {
  MoveSpec spec;
  std::vector<Collective> collectives;
  std::vector<nn::Tensor> expected;  // undefined: it gets nothing
  // What `collectives` give, as it was; undefined where it may change.
  std::vector<nn::Tensor> given;
};

Move MakeMove(const MoveSpec& spec, nn::Allocator& allocator);

// Each kind, in place and not, by counts too, with each count; dtype, op and
// root vary along.
std::vector<Move> MovesOf(int size, absl::Span<const std::int64_t> counts,
                          nn::Allocator& allocator);

// Rank `rank` has what is expected, and has kept its input.
void ExpectMovedTo(const Move& move, int rank);
// Every rank.
void ExpectMoved(const Move& move);

}  // namespace troupe::comm

#endif  // TESTS_COMM_MOVES_H_
