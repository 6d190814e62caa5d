// Everything that is particular to one kind of collective: its row and its
// constructor.

#include "comm/collective_kinds.h"

#include <utility>

namespace troupe::comm {
namespace {

// --- The rows. ---

using Kind = CollectiveKind;
constexpr Participants kAll = Participants::kAll;
constexpr Participants kRoot = Participants::kRoot;
constexpr Participants kNone = Participants::kNone;
constexpr Extent kBlock = Extent::kBlock;
constexpr Extent kPerRank = Extent::kBlockPerRank;
constexpr Extent kNothing = Extent::kNothing;

}  // namespace

// clang-format off
constexpr CollectiveRule internal::kCollectiveRules[kCollectiveKinds] = {
    // kind, name,
    //   gives, input, gets, range, reduces, input_may_be_range, updates
    {Kind::kAllReduce, "all_reduce",
     kAll, kBlock, kAll, kBlock, true, true, false},
    {Kind::kBroadcast, "broadcast",
     kRoot, kBlock, kAll, kBlock, false, true, false},
    {Kind::kBarrier, "barrier",
     kNone, kNothing, kNone, kNothing, false, false, false},
    {Kind::kReduceUpdate, "reduce_update",
     kAll, kBlock, kAll, kBlock, true, true, true},
    {Kind::kReduce, "reduce",
     kAll, kBlock, kRoot, kBlock, true, true, false},
    {Kind::kAllGather, "all_gather",
     kAll, kBlock, kAll, kPerRank, false, false, false},
    {Kind::kGather, "gather",
     kAll, kBlock, kRoot, kPerRank, false, false, false},
    {Kind::kScatter, "scatter",
     kRoot, kPerRank, kAll, kBlock, false, false, false},
    {Kind::kReduceScatter, "reduce_scatter",
     kAll, kPerRank, kAll, kBlock, true, false, false},
    {Kind::kAllToAll, "all_to_all",
     kAll, kPerRank, kAll, kPerRank, false, false, false},
};
// clang-format on

namespace {

constexpr bool RowsStandInOrder() {
  int number = 0;
  for (const CollectiveRule& rule : internal::kCollectiveRules) {
    if (static_cast<int>(rule.kind) != number++) return false;
  }
  return true;
}
static_assert(RowsStandInOrder(), "one row for each kind, in their order");

Collective OfKind(CollectiveKind kind, nn::Tensor input, nn::Tensor range) {
  Collective collective;
  collective.kind = kind;
  collective.input = std::move(input);
  collective.range = std::move(range);
  return collective;
}

}  // namespace

absl::string_view CollectiveKindName(CollectiveKind kind) {
  return RuleOf(kind).name;
}

// --- Constructors. ---

Collective AllReduce(ReduceOp op, nn::Tensor range) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.op = op;
  collective.range = std::move(range);
  return collective;
}

Collective ReduceUpdate(ReduceOp op, nn::Tensor range,
                        std::shared_ptr<ReplicaUpdate> update) {
  Collective collective = AllReduce(op, std::move(range));
  collective.kind = CollectiveKind::kReduceUpdate;
  collective.update = std::move(update);
  return collective;
}

Collective Broadcast(int root, nn::Tensor range) {
  Collective collective;
  collective.kind = CollectiveKind::kBroadcast;
  collective.root = root;
  collective.range = std::move(range);
  return collective;
}

Collective Barrier() { return Collective(); }

Collective Reduce(ReduceOp op, int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kReduce, std::move(input), std::move(range));
  collective.op = op;
  collective.root = root;
  return collective;
}

Collective AllGather(nn::Tensor input, nn::Tensor range) {
  return OfKind(CollectiveKind::kAllGather, std::move(input), std::move(range));
}

Collective Gather(int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kGather, std::move(input), std::move(range));
  collective.root = root;
  return collective;
}

Collective Scatter(int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kScatter, std::move(input), std::move(range));
  collective.root = root;
  return collective;
}

Collective ReduceScatter(ReduceOp op, nn::Tensor input, nn::Tensor range) {
  Collective collective = OfKind(CollectiveKind::kReduceScatter,
                                 std::move(input), std::move(range));
  collective.op = op;
  return collective;
}

Collective AllToAll(nn::Tensor input, nn::Tensor range) {
  return OfKind(CollectiveKind::kAllToAll, std::move(input), std::move(range));
}

Collective AllToAll(nn::Tensor input, std::vector<std::int64_t> send_counts,
                    nn::Tensor range, std::vector<std::int64_t> recv_counts) {
  Collective collective = AllToAll(std::move(input), std::move(range));
  collective.send_counts = std::move(send_counts);
  collective.recv_counts = std::move(recv_counts);
  return collective;
}

}  // namespace troupe::comm
