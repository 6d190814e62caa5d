#include "comm/spanning/frame_target.h"

#include "absl/strings/str_cat.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {
namespace {

// Returns whether `member` sends the sum of `node`, and has not done so yet.
bool ExpectsNode(const GroupLayout& layout, const Operation& op, int i,
                 int member, int node) {
  const TransferPlan& plan = *op.plan;
  return plan.BuffersParts(i, member, layout.self()) &&
         node < static_cast<int>(layout.nodes().size()) &&
         layout.nodes()[node].member == member &&
         op.pieces[i].Data(node) == nullptr;
}

// The same for the value.
bool ExpectsValue(const GroupLayout& layout, const Operation& op, int i,
                  int member) {
  const TransferPlan& plan = *op.plan;
  const int self = layout.self();
  const bool rides_in_note = plan.block_of(i).source == member &&
                             plan.SendsParts(i, member, self) &&
                             plan.eager(member, self);
  return plan.ValueFrom(i, self) == member && !rides_in_note &&
         op.pieces[i].Data(PieceProgress::kValue) == nullptr;
}

}  // namespace

absl::Status FindTarget(const GroupContext& context,
                        const OperationTable& table, int member,
                        const Frame& frame, FrameTarget* target) {
  OpPtr op = table.Find(frame.seq);
  if (op == nullptr || !op->planned() || !op->notes[member].here ||
      op->direct.begun()) {
    return context.Broke(member,
                         absl::StrCat("data of collective ", frame.seq,
                                      ", which was not announced to it"));
  }
  const bool partial = TypeOf(frame) == FrameType::kPartial;
  const TransferPlan& plan = *op->plan;
  const int i = plan.Find(frame.tag, frame.words[0]);
  bool fits = i >= 0 && frame.bytes == plan.BytesOf(i);
  if (fits) {
    fits = partial ? ExpectsNode(context.layout(), *op, i, member, frame.part)
                   : ExpectsValue(context.layout(), *op, i, member);
  }
  if (!fits) {
    return context.Broke(
        member,
        absl::StrCat(frame.bytes, " bytes at element ", frame.words[0],
                     " of block ", frame.tag, ", node ", frame.part, ", of ",
                     op->first().ToString(), ", collective ", frame.seq));
  }
  *target = {std::move(op), i, partial ? frame.part : PieceProgress::kValue};
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
