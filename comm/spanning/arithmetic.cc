#include "comm/spanning/arithmetic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/exception_text.h"
#include "comm/apply_update.h"
#include "comm/reduction/reduction_tree.h"

namespace troupe::comm::internal {
namespace {

// Applies the update on one rank, and copies the result to the others here. The
// ranks take turns.
absl::Status Update(Operation* op, std::int64_t begin, std::int64_t count,
                    std::int64_t turn, const char* sum) {
  const LocalCalls& calls = op->calls;
  const auto updater = static_cast<int>((op->seq + turn) % calls.size());
  ReplicaUpdate& mine = *calls[updater].collective.update;
  const nn::Tensor view =
      nn::Tensor::Borrow(const_cast<char*>(sum), {count},
                         op->operands.reduction().dtype, nn::Device());
  {
    // Another thread may be updating another piece.
    absl::MutexLock lock(&op->update_mutex);
    TROUPE_RETURN_IF_ERROR(ApplyCaught(mine, begin, view));
  }
  for (int place = 0; place < calls.size(); ++place) {
    if (place == updater) continue;
    CopyReplicas(mine, begin, count, *calls[place].collective.update);
  }
  return absl::OkStatus();
}

// Computes the tree of piece i, into the ranges of the ranks here, or a buffer
// for an update.
void ComputeTree(const GroupContext& context, Operation* op, int i) {
  PieceProgress& piece = op->pieces[i];
  absl::InlinedVector<void*, 8> to;
  if (op->updates()) {
    to.push_back(
        piece.Keep(context.board().staging().Take(op->plan->BytesOf(i))));
  } else {
    for (int rank : op->Targets(i)) to.push_back(op->Output(i, rank));
  }
  const char* nodes[kReductionSourcesMax];
  const char* ranks[kReductionSourcesMax];
  for (int n = 0; n < piece.nodes(); ++n) nodes[n] = piece.Data(n);
  for (const auto& [node, sum] : piece.parts()) nodes[node] = sum.data();
  for (int rank : context.ranks_here()) ranks[rank] = op->Input(i, rank);
  context.tree().Reduce(op->operands.reduction(), {nodes, ranks}, to,
                        static_cast<std::size_t>(op->plan->piece(i).count));
  piece.SetValue(static_cast<const char*>(to.front()));
}

}  // namespace

void SumNode(const GroupContext& context, const Operation& op, int i, int node,
             void* to) {
  const GroupLayout::Node& whole = context.layout().nodes()[node];
  const void* sources[kReductionSourcesMax];
  for (int r = whole.begin; r < whole.end; ++r) {
    sources[r - whole.begin] = op.Input(i, r);
  }
  Reduction inner = op.operands.reduction();
  inner.ranks = 0;
  ReduceTree(inner, absl::MakeConstSpan(sources, whole.ranks()),
             absl::MakeConstSpan(&to, 1),
             static_cast<std::size_t>(op.plan->piece(i).count));
}

absl::Status ComputePiece(const GroupContext& context, Operation* op, int i) {
  PieceProgress& piece = op->pieces[i];
  const TransferPlan& plan = *op->plan;
  const int source = plan.block_of(i).source;
  if (source == context.self()) {
    piece.SetValue(op->Input(i, plan.block_of(i).block.from));
  } else if (source == TransferPlan::kTree &&
             plan.Computes(i, context.self())) {
    ComputeTree(context, op, i);
    if (!op->updates()) return absl::OkStatus();
  }
  const char* const value = piece.Data(PieceProgress::kValue);
  if (op->updates()) {
    const TransferPlan::Piece& whole = plan.piece(i);
    return Update(op, whole.begin, whole.count, i, value);
  }
  // A process that only sent its parts has no value.
  if (value == nullptr) return absl::OkStatus();
  for (int rank : op->Targets(i)) {
    char* const to = op->Output(i, rank);
    if (to != value) std::memcpy(to, value, plan.BytesOf(i));
  }
  return absl::OkStatus();
}

absl::Status ComputePart(const GroupContext& context, Operation* op,
                         const DirectWork::Part& part) {
  const TransferPlan::PlannedBlock& block = op->plan->block(part.block);
  const Operands& operands = op->operands;
  const DirectAccess& direct = op->direct;
  const int ranks = context.layout().size();
  const auto bytes = static_cast<std::size_t>(operands.BytesOf(part.count));
  const std::int64_t from_at =
      operands.BytesOf(block.block.from_at + part.begin);
  const std::int64_t to_at = operands.BytesOf(block.block.to_at + part.begin);
  std::vector<void*> to;
  StagingBuffer sum;
  if (op->updates()) {
    sum = context.board().staging().Take(bytes);
    to.push_back(sum.data());
  } else if (op->SharedByAll(part.block)) {
    for (int rank = 0; rank < ranks; ++rank) {
      to.push_back(direct.output(rank) + to_at);
    }
  } else {
    for (int rank : operands.targets(part.block)) {
      to.push_back(operands.output(rank) + to_at);
    }
  }
  if (block.source != TransferPlan::kTree) {
    const char* const from = direct.input(block.block.from) + from_at;
    for (void* place : to) {
      if (place != from) std::memcpy(place, from, bytes);
    }
    return absl::OkStatus();
  }
  const void* sources[kReductionSourcesMax];
  for (int rank = 0; rank < ranks; ++rank) {
    sources[rank] = direct.input(rank) + from_at;
  }
  ReduceTree(operands.reduction(), absl::MakeConstSpan(sources, ranks), to,
             static_cast<std::size_t>(part.count));
  if (!op->updates()) return absl::OkStatus();
  return Update(op, part.begin, part.count, part.index, sum.data());
}

}  // namespace troupe::comm::internal
