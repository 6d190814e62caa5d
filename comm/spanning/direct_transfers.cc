#include "comm/spanning/direct_transfers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/spanning/arithmetic.h"
#include "comm/spanning/frames/wire.h"
#include "comm/spanning/references.h"

namespace troupe::comm::internal {
namespace {

// Returns memory that belongs to a rank here: it stays until the event is
// ready.
std::shared_ptr<char> Own(const char* data) {
  return std::shared_ptr<char>(std::shared_ptr<void>(),
                               const_cast<char*>(data));
}

}  // namespace

void DirectTransfers::Lend(const OpPtr& op) {
  life_->mutex().AssertHeld();
  op->direct.SetLends(true);
  life_->memory().LendToAll();
}

void DirectTransfers::LetGo(Operation* op, int member) {
  op->direct.SetLetGo(member);
  if (op->direct.lends()) life_->memory().LetGo(member);
}

absl::StatusOr<bool> DirectTransfers::Begin(const OpPtr& op, Outbox* out) {
  life_->mutex().AssertHeld();
  if (!op->direct.lends()) return false;
  const GroupContext& context = life_->context();
  const int members = context.layout().members();
  for (int m = 0; m < members; ++m) {
    if (m == context.self() || op->notes[m].by_reference) continue;
    for (int other = 0; other < members; ++other) {
      if (other != context.self()) LetGo(op.get(), other);
    }
    op->direct.SetLends(false);
    return false;
  }
  context.board().CountByReference();
  op->direct.Begin(context.layout(), *op->plan, op->operands.element_bytes(),
                   op->updates());
  for (int m = 0; m < members; ++m) {
    if (m == context.self()) continue;
    TROUPE_RETURN_IF_ERROR(BorrowRanges(context, op.get(), m));
  }
  for (int rank : context.ranks_here()) {
    op->direct.SetInput(rank, Own(op->operands.input(rank)));
    op->direct.SetOutput(rank, Own(op->operands.output(rank)));
  }
  PostTask(op);
  EndIfDone(op, out);
  return true;
}

void DirectTransfers::PostTask(const OpPtr& op) {
  if (!op->direct.AddTask(/*tasks_max=*/op->calls.size())) return;
  life_->context().board().Post(
      [self = shared_from_this(), op] { self->RunTask(op); });
}

// Computes one part, so that other tasks run in between.
void DirectTransfers::RunTask(const OpPtr& op) {
  DirectWork::Part part;
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return op->direct.DropTask();
    if (!op->direct.Claim(&part)) return;
    life_->memory().BeginReach();
    PostTask(op);
  }
  const absl::Status ran = ComputePart(life_->context(), op.get(), part);
  if (!ran.ok()) life_->BeginAbort(ran);
  Outbox out;
  {
    absl::MutexLock lock(&life_->mutex());
    life_->memory().EndReach();
    op->direct.EndTask();
    if (!life_->aborted()) {
      PostTask(op);
      EndIfDone(op, &out);
    }
    life_->EndIfReleased();
  }
  life_->Send(out);
  life_->LetGoAllIfDue();
}

void DirectTransfers::EndIfDone(const OpPtr& op, Outbox* out) {
  const GroupContext& context = life_->context();
  const GroupLayout& layout = context.layout();
  if (op->direct.over() || !op->direct.done()) return;
  for (int m = 0; m < layout.members(); ++m) {
    // The link is ending, which aborts the group soon.
    if (m != layout.self() &&
        !context.board().BorrowedHolds(layout.process_of(m))) {
      return;
    }
  }
  op->direct.SetOver();
  for (int m = 0; m < layout.members(); ++m) {
    if (m == layout.self()) continue;
    out->sends.push_back({m, context.FrameOf(FrameType::kLetGo, op->seq)});
  }
  FinishIfLetGo(op);
}

void DirectTransfers::FinishIfLetGo(const OpPtr& op) {
  if (life_->aborted() || !op->direct.over()) return;
  if (op->direct.AllLetGo(life_->context().self())) life_->Finish(op);
}

void DirectTransfers::ExpectLending() {
  {
    absl::MutexLock lock(&life_->mutex());
    life_->memory().ExpectLending();
  }
  life_->LetGoAllIfDue();
}

absl::Status DirectTransfers::TakeLetGo(int member, const Frame& frame) {
  absl::MutexLock lock(&life_->mutex());
  const OpPtr op = life_->ops().Find(frame.seq);
  const bool fits =
      op != nullptr && op->direct.lends() && !op->direct.let_go(member);
  // An aborted group does not process the last notes.
  if (!fits || (!life_->aborted() && !op->notes[member].by_reference)) {
    if (life_->aborted()) return absl::OkStatus();
    return life_->context().Broke(
        member, absl::StrCat("it lets go of collective ", frame.seq));
  }
  LetGo(op.get(), member);
  FinishIfLetGo(op);
  life_->EndIfReleased();
  return absl::OkStatus();
}

absl::Status DirectTransfers::TakeLetGoAll(int member) {
  absl::MutexLock lock(&life_->mutex());
  life_->memory().LetGoAll(member);
  life_->EndIfReleased();
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
