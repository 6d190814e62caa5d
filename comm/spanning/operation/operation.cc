#include "comm/spanning/operation/operation.h"

#include <cstddef>
#include <utility>

#include "comm/flow.h"

namespace troupe::comm::internal {
namespace {

// Limit on the size of a collective that is computed at once, by the thread
// that finds its inputs complete.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10;

}  // namespace

Operation::Operation(std::uint64_t seq, const GroupLayout& layout)
    : seq(seq),
      calls(static_cast<int>(layout.ranks_of(layout.self()).size())),
      notes(layout.members()),
      operands(layout.size()),
      direct(layout.members()) {}

void Operation::Reuse() {
  calls.Clear();
  notes.Clear();
  direct.Clear();
  phase = Phase::kJoining;
  differs = false;
  done.store(false, std::memory_order_relaxed);
}

absl::Status Operation::MakePlan(const GroupLayout& layout,
                                 const TransferSettings& settings) {
  for (int rank : layout.ranks_of(layout.self())) {
    operands.SetMemory(rank, calls[layout.place_of(rank)].collective);
  }
  const std::uint64_t signature = calls[calls.first_place()].signature;
  // Counts are not in the signature.
  if (plan != nullptr && planned_as == signature && !first().by_counts()) {
    sends.Restart();
    ResetPieces(layout);
    return absl::OkStatus();
  }
  planned_as = signature;
  std::vector<const Collective*> known(layout.size(), nullptr);
  for (int rank : layout.ranks_of(layout.self())) {
    known[rank] = &calls[layout.place_of(rank)].collective;
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<Block> blocks, FlowOf(known));
  operands.SetKind(first(), layout.size());
  plan = std::make_unique<TransferPlan>(layout, std::move(blocks),
                                        operands.element_bytes(), settings);
  operands.SetTargets(*plan, layout);
  MakePieces(layout);
  return absl::OkStatus();
}

void Operation::MakePieces(const GroupLayout& layout) {
  std::size_t bytes = 0;
  for (int i = 0; i < plan->pieces(); ++i) bytes += plan->BytesOf(i);
  pieces.clear();
  pieces.resize(plan->pieces());
  sends.Make(layout, *plan);
  small = sends.empty() && bytes <= kSmallBytes;
  ResetPieces(layout);
}

void Operation::ResetPieces(const GroupLayout& layout) {
  const int self = layout.self();
  for (int i = 0; i < plan->pieces(); ++i) {
    const bool computes_tree =
        plan->block_of(i).source == TransferPlan::kTree &&
        plan->Computes(i, self);
    pieces[i].Reset(
        plan->FramesFor(i, self),
        computes_tree ? static_cast<int>(layout.nodes().size()) : 0);
  }
  for (int i : sends.pieces()) pieces[i].ExpectParts();
  pieces_left = plan->pieces();
}

const char* Operation::Input(int i, int rank) const {
  return operands.Input(plan->block_of(i).block, plan->piece(i).begin, rank);
}

char* Operation::Output(int i, int rank) const {
  return operands.Output(plan->block_of(i).block, plan->piece(i).begin, rank);
}

bool Operation::SharedByAll(int b) const {
  const TransferPlan::PlannedBlock& block = plan->block(b);
  return block.source == TransferPlan::kTree && block.block.to == Block::kAll &&
         !updates();
}

}  // namespace troupe::comm::internal
