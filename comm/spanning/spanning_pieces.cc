// The pieces of a spanning group's collectives: sent, computed, forwarded.

#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/exception_text.h"
#include "comm/spanning/spanning_state.h"
#include "comm/spanning/wire.h"

namespace troupe::comm::internal {
namespace {

// Limit on the pieces of a group whose parts are being computed or sent: enough
// to keep the links busy. An urgent collective waits for at most that many.
constexpr int kWindow = 8;

// Calls user code, whose exceptions become an error of the group.
absl::Status ApplyCaught(ReplicaUpdate& update, std::int64_t begin,
                         const nn::Tensor& sum) {
  try {
    return update.Apply(begin, sum);
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace

// Reports that a link no longer needs one frame of a piece.
class PieceSent final : public SendDone {
 public:
  PieceSent(std::shared_ptr<SpanningState> state, SpanningState::OpPtr op,
            int piece, int member)
      : state_(std::move(state)),
        op_(std::move(op)),
        piece_(piece),
        member_(member) {}
  void OnSent() override {
    state_->OnSent(op_, piece_, member_);
    delete this;
  }

 private:
  const std::shared_ptr<SpanningState> state_;
  const SpanningState::OpPtr op_;
  const int piece_, member_;
};

void SpanningState::Begin(const OpPtr& op, Outbox* out) {
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == layout_.self()) continue;
    out->failure = ReadNote(op.get(), m);
    if (!out->failure.ok()) return;
  }
  if (op->pieces_left == 0) return Finish(op);
  const absl::StatusOr<bool> direct = BeginDirect(op);
  out->failure = direct.status();
  if (!direct.ok()) return;
  if (*direct) {
    PostDirect(op);
    return EndDirect(op, out);
  }
  for (PieceState& piece : op->pieces) piece.prepared = true;
  for (int i : op->order) op->pieces[i].prepared = false;
  if (!op->order.empty()) to_send_[op->urgency()] = op;
  Pump(out);
  const int pieces = op->plan->pieces();
  for (int i = 0; i < pieces; ++i) RunIfReady(op, i, out);
}

SpanningState::OpPtr SpanningState::MostUrgent() const {
  for (const auto& [urgency, op] : to_send_) {
    // A collective whose peers have no room yet does not delay others.
    if (op->MayGo(op->order[op->next_in_order], layout_.self())) return op;
  }
  return nullptr;
}

void SpanningState::Pump(Outbox* out) {
  while (status_.ok() && sending_ < kWindow) {
    const OpPtr op = MostUrgent();
    if (op == nullptr) return;
    const int i = op->order[op->next_in_order++];
    if (op->next_in_order == op->order.size()) to_send_.erase(op->urgency());
    op->Gone(i, layout_.self());
    ++sending_;
    bool sums = false;
    if (op->plan->block_of(i).source == TransferPlan::kTree) {
      for (int node : layout_.nodes_of(layout_.self())) {
        sums |= layout_.nodes()[node].ranks() > 1;
      }
    }
    if (sums) {
      board_->Post(
          [self = shared_from_this(), op, i] { self->PrepareTask(op, i); });
    } else {
      IssueParts(op, i, out);
    }
  }
}

void SpanningState::PumpTask() {
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    Pump(&out);
  }
  Flush(/*op=*/nullptr, &out);
}

void SpanningState::PrepareTask(const OpPtr& op, int i) {
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    ++busy_;
  }
  std::vector<std::pair<int, StagingBuffer>> sums;
  for (int node : layout_.nodes_of(layout_.self())) {
    if (layout_.nodes()[node].ranks() == 1) continue;
    sums.emplace_back(node, board_->staging().Take(op->plan->BytesOf(i)));
    ReduceNode(*op, i, node, sums.back().second.data());
  }
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    PieceState& piece = op->pieces[i];
    piece.parts = std::move(sums);
    if (status_.ok()) IssueParts(op, i, &out);
    --busy_;
    EndIfLetGo();
  }
  Flush(op, &out);
}

void SpanningState::IssueParts(const OpPtr& op, int i, Outbox* out) {
  const TransferPlan& plan = *op->plan;
  const int self = layout_.self();
  PieceState& piece = op->pieces[i];
  piece.prepared = true;
  const int source = plan.block_of(i).source;
  const auto part = [&](int node) -> const char* {
    for (const auto& [other, sum] : piece.parts) {
      if (other == node) return sum.data();
    }
    return op->Input(i, layout_.nodes()[node].begin);
  };
  for (int step = 1; step < layout_.members(); ++step) {
    const int m = (self + step) % layout_.members();
    if (!plan.SendsParts(i, self, m) || plan.eager(self, m)) continue;
    if (source != TransferPlan::kTree) {
      AddSend(op, i, m, FrameType::kValue, 0,
              op->Input(i, plan.block_of(i).block.from), out);
      continue;
    }
    for (int node : layout_.nodes_of(self)) {
      AddSend(op, i, m, FrameType::kPartial, node, part(node), out);
    }
  }
}

void SpanningState::AddSend(const OpPtr& op, int i, int member, FrameType type,
                            int node, const char* payload, Outbox* out) {
  Frame frame = MakeFrame(type, group_, op->seq);
  frame.bytes = static_cast<std::uint32_t>(op->plan->BytesOf(i));
  frame.part = static_cast<std::uint16_t>(node);
  frame.tag = TransferPlan::KeyOf(op->plan->block_of(i).block);
  frame.words[0] = static_cast<std::uint64_t>(op->plan->piece(i).begin);
  ++op->pieces[i].sends_out;
  ++busy_;
  ++sending_to_[member];
  out->sends.push_back({member, frame, payload,
                        new PieceSent(shared_from_this(), op, i, member)});
}

void SpanningState::OnSent(const OpPtr& op, int i, int member) {
  absl::MutexLock lock(&mutex_);
  PieceState& piece = op->pieces[i];
  --busy_;
  --sending_to_[member];
  --piece.sends_out;
  EndIfLetGo();
  if (!status_.ok() || piece.sends_out > 0) return;
  if (piece.stage == PieceState::Stage::kForwarding) return PieceDone(op, i);
  // The first step of this piece is complete. A link may have called from
  // within a Send(), so a task sends the next pieces.
  --sending_;
  if (!to_send_.empty()) {
    board_->Post([self = shared_from_this()] { self->PumpTask(); });
  }
  RunIfReady(op, i, /*out=*/nullptr);
}

void SpanningState::RunIfReady(const OpPtr& op, int i, Outbox* out) {
  PieceState& piece = op->pieces[i];
  if (piece.stage != PieceState::Stage::kWaiting || !op->begun ||
      !piece.prepared || piece.frames_missing > 0 || piece.sends_out > 0) {
    return;
  }
  piece.stage = PieceState::Stage::kRunning;
  ++busy_;
  if (op->small && out != nullptr) {
    out->small_pieces.push_back(i);
  } else {
    board_->Post([self = shared_from_this(), op, i] { self->Run(op, i); });
  }
}

void SpanningState::Run(const OpPtr& op, int i) {
  // `busy_` keeps the group's memory alive.
  absl::Status computed = status();
  if (computed.ok()) computed = Compute(op.get(), i);
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    --busy_;
    if (computed.ok() && status_.ok()) {
      GiveCredits(op, i, &out);
      Forward(op, i, &out);
    }
    if (computed.ok()) EndIfLetGo();
  }
  if (!computed.ok()) {
    BeginAbort(computed);
    absl::MutexLock lock(&mutex_);
    EndIfLetGo();
  }
  Flush(op, &out);
}

// Sends a credit to each member whose parts of piece i were buffered here.
void SpanningState::GiveCredits(const OpPtr& op, int i, Outbox* out) {
  for (int m = 0; m < layout_.members(); ++m) {
    int& due = op->windows[m].credits_due;
    if (due == 0 || !op->Stages(i, m, layout_.self())) continue;
    --due;
    out->sends.push_back({m, MakeFrame(FrameType::kCredit, group_, op->seq),
                          /*payload=*/nullptr, /*done=*/nullptr});
  }
}

void SpanningState::Forward(const OpPtr& op, int i, Outbox* out) {
  const int self = layout_.self();
  PieceState& piece = op->pieces[i];
  for (int step = 1; step < layout_.members(); ++step) {
    const int m = (self + step) % layout_.members();
    if (!op->plan->Forwards(i, self, m)) continue;
    AddSend(op, i, m, FrameType::kValue, 0, piece.value.data, out);
  }
  if (piece.sends_out == 0) return PieceDone(op, i);
  piece.stage = PieceState::Stage::kForwarding;
}

absl::Status SpanningState::Compute(Operation* op, int i) {
  PieceState& piece = op->pieces[i];
  const TransferPlan& plan = *op->plan;
  const std::vector<int>& targets = op->Targets(i);
  const int source = plan.block_of(i).source;
  const int self = layout_.self();
  if (source == self) {
    piece.value.data = op->Input(i, plan.block_of(i).block.from);
  } else if (source == TransferPlan::kTree && plan.Computes(i, self)) {
    absl::InlinedVector<void*, 8> to;
    if (op->updates()) {
      piece.buffers.push_back(board_->staging().Take(plan.BytesOf(i)));
      to.push_back(piece.buffers.back().data());
    } else {
      for (int rank : targets) to.push_back(op->Output(i, rank));
    }
    const char* nodes[kReductionSourcesMax];
    const char* ranks[kReductionSourcesMax];
    for (std::size_t n = 0; n < piece.nodes.size(); ++n) {
      nodes[n] = piece.nodes[n].data;
    }
    for (const auto& [node, sum] : piece.parts) nodes[node] = sum.data();
    for (int rank : layout_.ranks_of(self)) ranks[rank] = op->Input(i, rank);
    tree_.Reduce(op->reduction, {nodes, ranks}, to,
                 static_cast<std::size_t>(plan.piece(i).count));
    piece.value.data = static_cast<const char*>(to.front());
    if (!op->updates()) return absl::OkStatus();
  }
  if (op->updates()) {
    const TransferPlan::Piece& whole = plan.piece(i);
    return Update(op, whole.begin, whole.count, i, piece.value.data);
  }
  // A process that only sent its parts has no value.
  if (piece.value.data == nullptr) return absl::OkStatus();
  for (int rank : targets) {
    char* const to = op->Output(i, rank);
    if (to != piece.value.data) {
      std::memcpy(to, piece.value.data, plan.BytesOf(i));
    }
  }
  return absl::OkStatus();
}

// Applies the update on one rank, and copies the result to the others here. The
// ranks take turns.
absl::Status SpanningState::Update(Operation* op, std::int64_t begin,
                                   std::int64_t count, std::int64_t turn,
                                   const char* sum) {
  const std::size_t updater = (op->seq + turn) % op->ranks.size();
  ReplicaUpdate& mine = *op->ranks[updater].collective.update;
  const nn::Tensor view = nn::Tensor::Borrow(const_cast<char*>(sum), {count},
                                             op->reduction.dtype, nn::Device());
  {
    // Another thread may be updating another piece.
    absl::MutexLock lock(&op->update_mutex);
    TROUPE_RETURN_IF_ERROR(ApplyCaught(mine, begin, view));
  }
  const absl::Span<const nn::Tensor> updated = mine.replicas();
  for (std::size_t place = 0; place < op->ranks.size(); ++place) {
    if (place == updater) continue;
    const absl::Span<const nn::Tensor> theirs =
        op->ranks[place].collective.update->replicas();
    for (std::size_t k = 0; k < updated.size(); ++k) {
      const std::size_t element = nn::SizeOf(updated[k].dtype());
      const std::size_t offset = static_cast<std::size_t>(begin) * element;
      std::memcpy(static_cast<char*>(theirs[k].raw()) + offset,
                  static_cast<const char*>(updated[k].raw()) + offset,
                  static_cast<std::size_t>(count) * element);
    }
  }
  return absl::OkStatus();
}

void SpanningState::PieceDone(const OpPtr& op, int i) {
  PieceState& piece = op->pieces[i];
  piece.stage = PieceState::Stage::kDone;
  piece.buffers.clear();
  piece.parts.clear();
  if (--op->pieces_left == 0) Finish(op);
}

void SpanningState::Finish(const OpPtr& op) {
  ops_.erase(op->seq);
  if (op->has_events) {
    std::vector<Event> events;
    for (const Operation::Rank& rank : op->ranks) events.push_back(rank.event);
    board_->Post([events = std::move(events)] {
      for (const Event& event : events) event.Complete(absl::OkStatus());
    });
  }
  op->done.store(true, std::memory_order_release);
}

void SpanningState::Flush(const OpPtr& op, Outbox* out) {
  if (!out->failure.ok()) BeginAbort(out->failure);
  for (const Outgoing& send : out->sends) {
    board_->Send(layout_.process_of(send.member), send.frame, send.payload,
                 send.done);
  }
  for (int i : out->small_pieces) Run(op, i);
}

}  // namespace troupe::comm::internal
