// A spanning group's collectives by reference: its processes access each
// other's ranges in shared memory (direct_work.h), and send notifications only.
//
//     note       location of my ranks' ranges, in memory that all have mapped
//     let go     I have finished my part, and access your ranges no more; the
//                collective ends once all members have sent this
//
// After its note a process lends its ranges to each member (`lent_to_`), until
// that member has sent kLetGo for the collective, or, if the group is aborted,
// kLetGoAll. A member that sends neither has its link closed (Abort). After a
// link is lost, memory that was lent over it is not reused
// (SharedMemory::Spoil), since the other end may still write to it. Data read
// from memory that its owner has given up is never used: the owner's kLetGo
// does not arrive, or BorrowedHolds() returns false.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/spanning/spanning_state.h"
#include "comm/spanning/wire.h"

namespace troupe::comm::internal {

// Decides equally in all processes: collectives whose data is too large for
// notes.
bool SpanningState::Lendable(const Operation& op) const {
  const TransferPlan& plan = *op.plan;
  if (op.first().by_counts() || plan.pieces() == 0) return false;
  const bool shares = plan.piece(0).owner != TransferPlan::kEveryone;
  const std::size_t bytes =
      static_cast<std::size_t>(plan.block(0).block.count) * op.element_bytes /
      (shares ? layout_.members() : 1);
  return bytes > board_->options().eager_bytes.value_or(kEagerBytesDefault);
}

// Returns what follows the parts of a note: two references for each rank here,
// to its input and to its output, empty ones if no member needs it. Returns ""
// if all elements go over the links.
std::string SpanningState::References(const Operation& op) {
  if (board_->options().shared_memory == nullptr || !Lendable(op)) return "";
  const TransferPlan& plan = *op.plan;
  const std::vector<int>& here = layout_.ranks_of(layout_.self());
  std::vector<int> peers;
  for (int m = 0; m < layout_.members(); ++m) {
    if (m != layout_.self()) peers.push_back(layout_.process_of(m));
  }
  std::vector<Reference> references(2 * here.size());
  const auto lend = [&](const char* data, std::int64_t elements,
                        Reference* reference) {
    const auto lent = board_->Lend(
        data, static_cast<std::size_t>(elements) * op.element_bytes, peers);
    if (lent) *reference = *lent;
    return lent.has_value();
  };
  for (int b = 0; b < plan.blocks(); ++b) {
    const Block& block = plan.block(b).block;
    const bool shared = SharedByAll(op, b);
    for (std::size_t place = 0; place < here.size(); ++place) {
      const int rank = here[place];
      if (block.from != Block::kAll && block.from != rank) continue;
      Reference* const both = &references[2 * place];
      if (!lend(op.inputs[rank], block.from_at + block.count, both)) return "";
      if (shared && !lend(op.outputs[rank], block.count, both + 1)) return "";
    }
  }
  return std::string(reinterpret_cast<const char*>(references.data()),
                     references.size() * sizeof(Reference));
}

// Returns whether each process computes a share of block b, and writes it to
// all.
bool SpanningState::SharedByAll(const Operation& op, int b) {
  const TransferPlan::PlannedBlock& block = op.plan->block(b);
  return block.source == TransferPlan::kTree && block.block.to == Block::kAll &&
         !op.updates();
}

void SpanningState::LendAll(Operation* op) {
  op->lends = lends_ = true;
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == layout_.self() || let_go_all_[m]) continue;
    ++lent_to_[m];
    ++busy_;
  }
}

void SpanningState::LetGoOf(Operation* op, int member) {
  op->let_go[member] = true;
  if (!op->lends || lent_to_[member] == 0) return;
  --lent_to_[member];
  --busy_;
}

absl::StatusOr<bool> SpanningState::BeginDirect(const OpPtr& op) {
  if (!op->lends) return false;
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == layout_.self() || op->notes[m].by_reference) continue;
    // All elements go over links; every process comes to the same conclusion.
    for (int other = 0; other < layout_.members(); ++other) {
      if (other != layout_.self()) LetGoOf(op.get(), other);
    }
    op->lends = false;
    return false;
  }
  board_->CountByReference();
  op->direct = std::make_unique<Direct>(layout_, *op->plan, op->element_bytes,
                                        op->updates());
  for (int m = 0; m < layout_.members(); ++m) {
    if (m != layout_.self()) TROUPE_RETURN_IF_ERROR(BorrowFrom(op.get(), m));
  }
  const auto own = [](const char* data) {
    // The memory stays until the event is ready.
    return std::shared_ptr<char>(std::shared_ptr<void>(),
                                 const_cast<char*>(data));
  };
  for (int rank : layout_.ranks_of(layout_.self())) {
    op->direct->inputs[rank] = own(op->inputs[rank]);
    op->direct->outputs[rank] = own(op->outputs[rank]);
  }
  return true;
}

// Maps the memory of `member` that this process needs.
absl::Status SpanningState::BorrowFrom(Operation* op, int member) {
  const std::vector<int>& theirs = layout_.ranks_of(member);
  std::vector<Reference> references(2 * theirs.size());
  const absl::string_view payload = op->notes[member].payload;
  const std::size_t bytes = references.size() * sizeof(Reference);
  std::memcpy(references.data(), payload.data() + payload.size() - bytes,
              bytes);
  const auto borrow = [&](const Reference& reference, std::int64_t elements,
                          std::shared_ptr<char>* to) {
    *to =
        board_->Borrow(layout_.process_of(member), reference,
                       static_cast<std::size_t>(elements) * op->element_bytes);
    return *to != nullptr
               ? absl::OkStatus()
               : Broke(member, "a reference to memory that it does not lend");
  };
  for (int b = 0; b < op->plan->blocks(); ++b) {
    if (!op->plan->block(b).wants[layout_.self()]) continue;
    const Block& block = op->plan->block(b).block;
    for (std::size_t place = 0; place < theirs.size(); ++place) {
      const int rank = theirs[place];
      if (block.from != Block::kAll && block.from != rank) continue;
      const Reference* const both = &references[2 * place];
      TROUPE_RETURN_IF_ERROR(borrow(both[0], block.from_at + block.count,
                                    &op->direct->inputs[rank]));
      if (!SharedByAll(*op, b)) continue;
      TROUPE_RETURN_IF_ERROR(
          borrow(both[1], block.count, &op->direct->outputs[rank]));
    }
  }
  return absl::OkStatus();
}

// Posts as many tasks as there are ranks here, since all of them may drive.
void SpanningState::PostDirect(const OpPtr& op) {
  Direct& direct = *op->direct;
  if (direct.tasks >= static_cast<int>(op->ranks.size()) ||
      !direct.work.claimable()) {
    return;
  }
  ++direct.tasks;
  board_->Post([self = shared_from_this(), op] { self->DirectTask(op); });
}

// Computes one part, so that other tasks run in between.
void SpanningState::DirectTask(const OpPtr& op) {
  DirectWork::Part part;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok() || !op->direct->work.Claim(&part)) {
      --op->direct->tasks;
      return;
    }
    ++busy_;
    ++reaching_;
    PostDirect(op);
  }
  const absl::Status ran = RunPart(op.get(), part);
  if (!ran.ok()) BeginAbort(ran);
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    --busy_;
    --reaching_;
    --op->direct->tasks;
    op->direct->work.Done();
    if (status_.ok()) {
      PostDirect(op);
      EndDirect(op, &out);
    }
    EndIfLetGo();
  }
  Flush(op, &out);
  LetGoAllIfDue();
}

absl::Status SpanningState::RunPart(Operation* op,
                                    const DirectWork::Part& part) {
  const TransferPlan::PlannedBlock& block = op->plan->block(part.block);
  const auto element = static_cast<std::int64_t>(op->element_bytes);
  const std::size_t bytes = static_cast<std::size_t>(part.count * element);
  const std::int64_t from_at = (block.block.from_at + part.begin) * element;
  const std::int64_t to_at = (block.block.to_at + part.begin) * element;
  std::vector<void*> to;
  StagingBuffer sum;
  if (op->updates()) {
    sum = board_->staging().Take(bytes);
    to.push_back(sum.data());
  } else if (SharedByAll(*op, part.block)) {
    for (const auto& output : op->direct->outputs) {
      to.push_back(output.get() + to_at);
    }
  } else {
    for (int rank : op->targets[part.block]) {
      to.push_back(op->outputs[rank] + to_at);
    }
  }
  if (block.source != TransferPlan::kTree) {
    const char* const from =
        op->direct->inputs[block.block.from].get() + from_at;
    for (void* place : to) {
      if (place != from) std::memcpy(place, from, bytes);
    }
    return absl::OkStatus();
  }
  const void* sources[kReductionSourcesMax];
  for (int rank = 0; rank < layout_.size(); ++rank) {
    sources[rank] = op->direct->inputs[rank].get() + from_at;
  }
  ReduceTree(op->reduction, absl::MakeConstSpan(sources, layout_.size()), to,
             static_cast<std::size_t>(part.count));
  if (!op->updates()) return absl::OkStatus();
  return Update(op, part.begin, part.count, part.index, sum.data());
}

// Notifies the members, once, that all work of this process is complete.
void SpanningState::EndDirect(const OpPtr& op, Outbox* out) {
  if (op->direct->over || !op->direct->work.done()) return;
  for (int m = 0; m < layout_.members(); ++m) {
    // The link is ending, which aborts the group soon.
    if (m != layout_.self() && !board_->BorrowedHolds(layout_.process_of(m))) {
      return;
    }
  }
  op->direct->over = true;
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == layout_.self()) continue;
    out->sends.push_back({m, MakeFrame(FrameType::kLetGo, group_, op->seq),
                          /*payload=*/nullptr, /*done=*/nullptr});
  }
  FinishIfLetGo(op);
}

void SpanningState::FinishIfLetGo(const OpPtr& op) {
  if (!status_.ok() || op->direct == nullptr || !op->direct->over) return;
  for (int m = 0; m < layout_.members(); ++m) {
    if (m != layout_.self() && !op->let_go[m]) return;
  }
  Finish(op);
}

void SpanningState::HearOfLending() {
  {
    absl::MutexLock lock(&mutex_);
    lends_ = true;
  }
  LetGoAllIfDue();
}

// Sends kLetGoAll once nothing here accesses peers' memory: peers wait for it
// when a group that lends memory ends.
void SpanningState::LetGoAllIfDue() {
  {
    absl::MutexLock lock(&mutex_);
    if (status_.ok() || reaching_ > 0 || !lends_ || said_let_go_) return;
    said_let_go_ = true;
  }
  SendToAll(MakeFrame(FrameType::kLetGoAll, group_, 0), "");
}

absl::Status SpanningState::TakeLetGo(int member, const Frame& frame) {
  absl::MutexLock lock(&mutex_);
  const auto found = ops_.find(frame.seq);
  const bool fits = found != ops_.end() && found->second->lends &&
                    !found->second->let_go[member];
  // An aborted group does not process the last notes.
  if (!fits || (status_.ok() && !found->second->notes[member].by_reference)) {
    if (!status_.ok()) return absl::OkStatus();
    return Broke(member, absl::StrCat("it lets go of collective ", frame.seq));
  }
  const OpPtr op = found->second;
  LetGoOf(op.get(), member);
  FinishIfLetGo(op);
  EndIfLetGo();
  return absl::OkStatus();
}

absl::Status SpanningState::TakeLetGoAll(int member) {
  absl::MutexLock lock(&mutex_);
  let_go_all_[member] = true;
  busy_ -= std::exchange(lent_to_[member], 0);
  EndIfLetGo();
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
