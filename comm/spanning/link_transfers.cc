#include "comm/spanning/link_transfers.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/spanning/arithmetic.h"

namespace troupe::comm::internal {
namespace {

// Returns whether this process sends sums of its ranks' inputs as parts of
// piece i, which must be computed before.
bool SendsSums(const GroupContext& context, const Operation& op, int i) {
  if (op.plan->block_of(i).source != TransferPlan::kTree) return false;
  const GroupLayout& layout = context.layout();
  for (int node : layout.nodes_of(layout.self())) {
    if (layout.nodes()[node].ranks() > 1) return true;
  }
  return false;
}

}  // namespace

// Reports that a link no longer needs one frame of a piece.
class LinkTransfers::PieceSent final : public SendDone {
 public:
  PieceSent(std::shared_ptr<LinkTransfers> transfers, OpPtr op, int piece,
            int member)
      : transfers_(std::move(transfers)),
        op_(std::move(op)),
        piece_(piece),
        member_(member) {}
  void OnSent() override {
    transfers_->OnSent(op_, piece_, member_);
    delete this;
  }

 private:
  const std::shared_ptr<LinkTransfers> transfers_;
  const OpPtr op_;
  const int piece_, member_;
};

void LinkTransfers::Begin(const OpPtr& op, Outbox* out) {
  life_->mutex().AssertHeld();
  if (!op->sends.empty()) life_->sends().Add(op);
  Pump(out);
  const int pieces = op->plan->pieces();
  for (int i = 0; i < pieces; ++i) RunIfReady(op, i, out);
}

void LinkTransfers::Flush(const OpPtr& op, Outbox* out) {
  life_->Send(*out);
  for (int i : out->small_pieces) Run(op, i);
}

absl::Status LinkTransfers::Find(int member, const Frame& frame,
                                 FrameTarget* target) {
  const FrameType type = TypeOf(frame);
  const bool elements =
      type == FrameType::kPartial || type == FrameType::kValue;
  if (!elements || life_->aborted()) return absl::OkStatus();
  return FindTarget(life_->context(), life_->ops(), member, frame, target);
}

char* LinkTransfers::Place(int member, const Frame& frame) {
  absl::MutexLock lock(&life_->mutex());
  FrameTarget target;
  if (!Find(member, frame, &target).ok() || target.op == nullptr) {
    return nullptr;
  }
  const Operation& op = *target.op;
  PieceProgress& piece = target.op->pieces[target.piece];
  // A range that may still be sent from cannot receive yet.
  const std::vector<int>& targets = op.Targets(target.piece);
  const bool into_range = target.node == PieceProgress::kValue &&
                          !op.updates() && !targets.empty() && !piece.sending();
  char* to;
  if (into_range) {
    to = op.Output(target.piece, targets.front());
  } else {
    to = piece.Keep(life_->context().board().staging().Take(frame.bytes));
  }
  piece.Place(target.node, member, to);
  life_->memory().BeginReceive(member);
  return to;
}

absl::Status LinkTransfers::TakeElements(int member, const Frame& frame) {
  Outbox out;
  OpPtr op;
  {
    absl::MutexLock lock(&life_->mutex());
    op = life_->ops().Find(frame.seq);
    // Place() has validated the frame, if it left an address.
    const int node =
        TypeOf(frame) == FrameType::kValue ? PieceProgress::kValue : frame.part;
    int i = -1;
    if (op != nullptr && op->planned()) {
      i = op->plan->Find(frame.tag, frame.words[0]);
    }
    const bool placed = i >= 0 && op->pieces[i].Receiving(node, member) &&
                        life_->memory().receiving_from(member);
    if (!placed) {
      FrameTarget ignored;
      TROUPE_RETURN_IF_ERROR(Find(member, frame, &ignored));
      // The frame was empty, or arrived while the group was being aborted.
      return life_->aborted()
                 ? absl::OkStatus()
                 : life_->context().Broke(member, "elements without bytes");
    }
    life_->memory().EndReceive(member);
    op->pieces[i].Arrive(node);
    life_->EndIfReleased();
    if (!life_->aborted()) RunIfReady(op, i, &out);
  }
  Flush(op, &out);
  return absl::OkStatus();
}

absl::Status LinkTransfers::TakeCredit(int member, const Frame& frame) {
  Outbox out;
  OpPtr op;
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return absl::OkStatus();
    op = life_->ops().Find(frame.seq);
    if (op == nullptr || !op->begun() || !op->sends.TakeCredit(member)) {
      return life_->context().Broke(
          member, absl::StrCat("a credit for collective ", frame.seq));
    }
    Pump(&out);
  }
  Flush(op, &out);
  return absl::OkStatus();
}

void LinkTransfers::Pump(Outbox* out) {
  while (!life_->aborted()) {
    int i;
    const OpPtr op = life_->sends().TakeNext(&i);
    if (op == nullptr) return;
    if (SendsSums(life_->context(), *op, i)) {
      life_->context().board().Post(
          [self = shared_from_this(), op, i] { self->PrepareTask(op, i); });
    } else {
      IssueParts(op, i, out);
    }
  }
}

void LinkTransfers::PumpTask() {
  Outbox out;
  {
    absl::MutexLock lock(&life_->mutex());
    Pump(&out);
  }
  Flush(/*op=*/nullptr, &out);
}

void LinkTransfers::PrepareTask(const OpPtr& op, int i) {
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return;
    life_->memory().BeginTask();
  }
  const GroupContext& context = life_->context();
  const GroupLayout& layout = context.layout();
  PieceProgress::Sums sums;
  for (int node : layout.nodes_of(layout.self())) {
    if (layout.nodes()[node].ranks() == 1) continue;
    sums.emplace_back(node,
                      context.board().staging().Take(op->plan->BytesOf(i)));
    SumNode(context, *op, i, node, sums.back().second.data());
  }
  Outbox out;
  {
    absl::MutexLock lock(&life_->mutex());
    op->pieces[i].SetParts(std::move(sums));
    if (!life_->aborted()) IssueParts(op, i, &out);
    life_->memory().EndTask();
    life_->EndIfReleased();
  }
  Flush(op, &out);
}

void LinkTransfers::IssueParts(const OpPtr& op, int i, Outbox* out) {
  const GroupLayout& layout = life_->context().layout();
  const TransferPlan& plan = *op->plan;
  const int self = layout.self();
  PieceProgress& piece = op->pieces[i];
  piece.SetSent();
  const int source = plan.block_of(i).source;
  for (int step = 1; step < layout.members(); ++step) {
    const int m = (self + step) % layout.members();
    if (!plan.SendsFrames(i, self, m)) continue;
    if (source != TransferPlan::kTree) {
      AddSend(op, i, m, FrameType::kValue, 0,
              op->Input(i, plan.block_of(i).block.from), out);
      continue;
    }
    for (int node : layout.nodes_of(self)) {
      const char* part = piece.Part(node);
      if (part == nullptr) part = op->Input(i, layout.nodes()[node].begin);
      AddSend(op, i, m, FrameType::kPartial, node, part, out);
    }
  }
}

void LinkTransfers::AddSend(const OpPtr& op, int i, int member, FrameType type,
                            int node, const char* payload, Outbox* out) {
  Frame frame = life_->context().FrameOf(type, op->seq);
  frame.bytes = static_cast<std::uint32_t>(op->plan->BytesOf(i));
  frame.part = static_cast<std::uint16_t>(node);
  frame.tag = TransferPlan::KeyOf(op->plan->block_of(i).block);
  frame.words[0] = static_cast<std::uint64_t>(op->plan->piece(i).begin);
  op->pieces[i].BeginSend();
  life_->memory().BeginSend(member);
  out->sends.push_back({member, frame, payload,
                        new PieceSent(shared_from_this(), op, i, member)});
}

void LinkTransfers::OnSent(const OpPtr& op, int i, int member) {
  absl::MutexLock lock(&life_->mutex());
  PieceProgress& piece = op->pieces[i];
  life_->memory().EndSend(member);
  const bool last = piece.EndSend();
  life_->EndIfReleased();
  if (life_->aborted() || !last) return;
  if (piece.forwarding()) return PieceDone(op, i);
  // The first step of this piece is complete. A link may have called from
  // within a Send(), so a task sends the next pieces.
  life_->sends().EndSend();
  if (!life_->sends().empty()) {
    life_->context().board().Post(
        [self = shared_from_this()] { self->PumpTask(); });
  }
  RunIfReady(op, i, /*out=*/nullptr);
}

void LinkTransfers::RunIfReady(const OpPtr& op, int i, Outbox* out) {
  if (!op->begun() || !op->pieces[i].TakeReady()) return;
  life_->memory().BeginTask();
  if (op->small && out != nullptr) {
    out->small_pieces.push_back(i);
  } else {
    life_->context().board().Post(
        [self = shared_from_this(), op, i] { self->Run(op, i); });
  }
}

void LinkTransfers::Run(const OpPtr& op, int i) {
  // The use that RunIfReady() counted keeps the group's memory alive.
  absl::Status computed = life_->status();
  if (computed.ok()) computed = ComputePiece(life_->context(), op.get(), i);
  Outbox out;
  {
    absl::MutexLock lock(&life_->mutex());
    life_->memory().EndTask();
    if (computed.ok() && !life_->aborted()) {
      GiveCredits(op, i, &out);
      Forward(op, i, &out);
    }
    if (computed.ok()) life_->EndIfReleased();
  }
  if (!computed.ok()) {
    life_->BeginAbort(computed);
    absl::MutexLock lock(&life_->mutex());
    life_->EndIfReleased();
  }
  Flush(op, &out);
}

// Sends a credit to each member whose parts of piece i were buffered here.
void LinkTransfers::GiveCredits(const OpPtr& op, int i, Outbox* out) {
  for (int m = 0; m < life_->context().layout().members(); ++m) {
    if (!op->sends.GiveCredit(i, m)) continue;
    out->sends.push_back(
        {m, life_->context().FrameOf(FrameType::kCredit, op->seq)});
  }
}

void LinkTransfers::Forward(const OpPtr& op, int i, Outbox* out) {
  const GroupLayout& layout = life_->context().layout();
  const int self = layout.self();
  PieceProgress& piece = op->pieces[i];
  for (int step = 1; step < layout.members(); ++step) {
    const int m = (self + step) % layout.members();
    if (!op->plan->Forwards(i, self, m)) continue;
    AddSend(op, i, m, FrameType::kValue, 0, piece.Data(PieceProgress::kValue),
            out);
  }
  if (!piece.sending()) return PieceDone(op, i);
  piece.BeginForward();
}

void LinkTransfers::PieceDone(const OpPtr& op, int i) {
  op->pieces[i].Finish();
  if (--op->pieces_left == 0) life_->Finish(op);
}

}  // namespace troupe::comm::internal
