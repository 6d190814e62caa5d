#include "comm/spanning/spanning_state.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "comm/signature.h"
#include "comm/spanning/agreement.h"
#include "comm/spanning/frames/wire.h"
#include "comm/spanning/note_content.h"
#include "comm/spanning/references.h"

namespace troupe::comm::internal {

SpanningState::SpanningState(std::shared_ptr<Switchboard> board,
                             std::shared_ptr<Courier> courier,
                             std::uint32_t group, FabricGroupOptions options)
    : life_(GroupLifetime::Make(std::move(board), std::move(courier), group,
                                std::move(options))),
      links_(std::make_shared<LinkTransfers>(life_)),
      direct_(std::make_shared<DirectTransfers>(life_)) {}

absl::StatusOr<OpPtr> SpanningState::Join(int place,
                                          const Collective& collective,
                                          const Event& event) {
  OpPtr op;
  absl::Status differs;
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) {
      life_->waits().RecordRefused(place, collective);
      return life_->failure();
    }
    TROUPE_RETURN_IF_ERROR(life_->ops().CheckRoom(place));
    op = life_->ops().JoinNext(place);
    op->calls.Join(place, collective, event);
    differs = CheckAgreement(context(), *op);
    op->differs |= !differs.ok();
  }
  if (!differs.ok()) BeginAbort(differs);
  return op;
}

void SpanningState::Arm(int place, const OpPtr& op, const absl::Status& after) {
  absl::Status failure;
  bool all = false;
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return;
    if (!after.ok()) {
      failure = base::WithMessage(
          after, absl::StrCat("rank ", context().ranks_here()[place],
                              " could not begin ",
                              op->calls[place].collective.ToString(), ": ",
                              after.message()));
    } else {
      op->calls.Arm(place);
      failure = life_->departures().Before(op->seq);
      all = op->calls.all_armed() && failure.ok();
      if (all) life_->memory().BeginTask();  // the notes read the ranks' inputs
    }
  }
  if (!failure.ok()) return BeginAbort(failure);
  if (all) Announce(op);
}

void SpanningState::Recycle(OpPtr op) {
  absl::MutexLock lock(&life_->mutex());
  if (!life_->aborted()) life_->ops().Recycle(std::move(op));
}

void SpanningState::Announce(const OpPtr& op) {
  const absl::Status planned = op->MakePlan(layout(), context().settings());
  if (planned.ok()) SendNotes(*op, LendIfPossible(op));
  Outbox out;
  {
    absl::MutexLock lock(&life_->mutex());
    life_->memory().EndTask();
    life_->EndIfReleased();
    if (planned.ok() && !life_->aborted()) {
      op->phase = Operation::Phase::kAnnounced;
      BeginIfAllHere(op, &out);
    }
  }
  if (!planned.ok()) return BeginAbort(planned);
  links_->Flush(op, &out);
}

std::string SpanningState::LendIfPossible(const OpPtr& op) {
  std::string references = LendRanges(context(), *op);
  absl::MutexLock lock(&life_->mutex());
  op->phase = Operation::Phase::kPlanned;
  if (life_->aborted()) references.clear();
  if (!references.empty()) direct_->Lend(op);
  return references;
}

void SpanningState::SendNotes(const Operation& op,
                              absl::string_view references) {
  Frame note = context().FrameOf(FrameType::kNote, op.seq);
  note.part = static_cast<std::uint16_t>(context().ranks_here().front());
  note.tag = references.empty() ? 0 : 1;
  note.words[0] = op.calls[0].signature;
  note.words[2] = PackReplicas(op.first());
  for (int m = 0; m < layout().members(); ++m) {
    if (m == context().self()) continue;
    note.words[1] = PackSettings(context().settings(), m);
    std::string built;
    absl::string_view payload = OnlyPart(context(), op, m);
    if (payload.empty() || !references.empty()) {
      payload = built = NoteContent(context(), op, m, references);
    }
    note.bytes = static_cast<std::uint32_t>(payload.size());
    context().Send(m, note, payload.data(), /*done=*/nullptr, /*copy=*/true);
  }
}

void SpanningState::BeginIfAllHere(const OpPtr& op, Outbox* out) {
  if (op->phase != Operation::Phase::kAnnounced || op->differs ||
      !op->notes.complete()) {
    return;
  }
  op->phase = Operation::Phase::kBegun;
  Begin(op, out);
}

void SpanningState::Begin(const OpPtr& op, Outbox* out) {
  for (int m = 0; m < layout().members(); ++m) {
    if (m == context().self()) continue;
    out->failure = ReadNote(context(), op.get(), m);
    if (!out->failure.ok()) return;
  }
  if (op->pieces_left == 0) return life_->Finish(op);
  const absl::StatusOr<bool> by_reference = direct_->Begin(op, out);
  out->failure = by_reference.status();
  if (by_reference.ok() && !*by_reference) links_->Begin(op, out);
}

bool SpanningState::RunsAtOnce(const Operation& op) const {
  return layout().members() == 2 && op.announced() && op.small && !op.differs;
}

absl::Status SpanningState::Missing() const {
  absl::Status needed;
  for (const auto& [seq, op] : life_->ops().all()) {
    if (op->calls.any_armed()) needed.Update(life_->departures().Before(seq));
  }
  return needed;
}

void SpanningState::Depart(int place) {
  const int rank = context().ranks_here()[place];
  SetWakeup(place, nullptr);
  Frame frame = context().FrameOf(FrameType::kDepart, 0);
  frame.part = static_cast<std::uint16_t>(rank);
  std::string pending;
  absl::Status needed;
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return;
    pending = life_->waits().FirstOf(place);
    // It departs in order only if none of its work is left.
    if (pending.empty()) {
      frame.seq = life_->ops().joined(place);
      life_->departures().Add(rank, frame.seq);
      needed = Missing();
    }
  }
  if (!pending.empty()) {
    return Abort(absl::UnavailableError(
        absl::StrCat("rank ", rank, " left the group during ", pending)));
  }
  if (!needed.ok()) return Abort(needed);
  context().SendToAll(frame, "");
  EndMessagesOfGone();
}

void SpanningState::EndMessagesOfGone() {
  std::vector<int> gone;
  {
    absl::MutexLock lock(&life_->mutex());
    gone = life_->departures().ranks();
  }
  for (int rank : gone) {
    std::string waiting = messages().FirstThatNeeds(rank);
    // A receive from any source fails once no other rank is left.
    if (waiting.empty() &&
        static_cast<int>(gone.size()) + 1 >= layout().size()) {
      waiting = messages().FirstReceive();
    }
    if (waiting.empty()) continue;
    return BeginAbort(absl::UnavailableError(
        absl::StrCat("rank ", rank, " left the group, in which ", waiting,
                     " waits for it")));
  }
}

std::vector<Waiting> SpanningState::Waits(int place) const {
  absl::MutexLock lock(&life_->mutex());
  return life_->waits().Of(place);
}

void SpanningState::SetSince(int place, const OpPtr& op) {
  const auto now = std::chrono::steady_clock::now();
  absl::MutexLock lock(&life_->mutex());
  op->calls.SetSince(place, now);
}

std::string SpanningState::DescribeWait(int place, const Operation& op) const {
  absl::MutexLock lock(&life_->mutex());
  return life_->waits().Describe(place, op);
}

char* SpanningState::Place(int peer, const Frame& frame) {
  const int member = layout().member_at(peer);
  return member < 0 ? nullptr : links_->Place(member, frame);
}

absl::Status SpanningState::Take(int peer, const Frame& frame,
                                 const char* payload) {
  const int member = layout().member_at(peer);
  if (member < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(board().NameOf(peer), " has no rank in group ",
                     context().name(), ", to which it sent a frame"));
  }
  switch (TypeOf(frame)) {
    case FrameType::kNote:
      return TakeNote(member, frame, payload);
    case FrameType::kPartial:
    case FrameType::kValue:
      return links_->TakeElements(member, frame);
    case FrameType::kCredit:
      return links_->TakeCredit(member, frame);
    case FrameType::kAbort:
      return TakeAbort(frame, payload);
    case FrameType::kDepart:
      return TakeDepart(member, frame);
    case FrameType::kLetGo:
      return direct_->TakeLetGo(member, frame);
    case FrameType::kLetGoAll:
      return direct_->TakeLetGoAll(member);
    case FrameType::kOffer:
      return messages().Take(peer, frame, payload);
    default:
      return context().Broke(member,
                             absl::StrCat("a frame of type ", frame.type));
  }
}

absl::Status SpanningState::TakeNote(int member, const Frame& frame,
                                     const char* payload) {
  Outbox out;
  OpPtr op;
  absl::Status differs;
  if (frame.tag != 0) direct_->ExpectLending();
  {
    absl::MutexLock lock(&life_->mutex());
    if (life_->aborted()) return absl::OkStatus();
    OperationTable& ops = life_->ops();
    if (ops.MayBeAnnounced(frame.seq) && IsSignature(frame.words[0])) {
      op = ops.FindOrMake(frame.seq);
    }
    if (op == nullptr || op->notes[member].here) {
      return context().Broke(member,
                             absl::StrCat("a note of collective ", frame.seq,
                                          ", which is not to be announced"));
    }
    Note note;
    note.rank = layout().ranks_of(member).front();
    note.signature = frame.words[0];
    note.settings = frame.words[1];
    note.replicas = frame.words[2];
    note.by_reference = frame.tag != 0;
    if (frame.bytes > 0) note.payload = {payload, frame.bytes};
    op->notes.Add(member, std::move(note), /*keep=*/!RunsAtOnce(*op));
    differs = CheckAgreement(context(), *op);
    op->differs |= !differs.ok();
    BeginIfAllHere(op, &out);
  }
  if (!differs.ok()) {
    BeginAbort(differs);
    return absl::OkStatus();
  }
  links_->Flush(op, &out);
  return absl::OkStatus();
}

absl::Status SpanningState::TakeAbort(const Frame& frame, const char* payload) {
  const auto code = static_cast<absl::StatusCode>(
      frame.words[0] >= 1 && frame.words[0] <= 16 ? frame.words[0] : 2);
  const std::size_t bytes = std::min<std::size_t>(frame.bytes, kAbortTextMax);
  BeginAbort(
      absl::Status(code, bytes > 0 ? absl::string_view(payload, bytes) : ""));
  return absl::OkStatus();
}

absl::Status SpanningState::TakeDepart(int member, const Frame& frame) {
  const int rank = frame.part;
  if (rank >= layout().size() || layout().member_of(rank) != member) {
    return context().Broke(member,
                           absl::StrCat("the departure of rank ", rank));
  }
  absl::Status needed;
  {
    absl::MutexLock lock(&life_->mutex());
    life_->departures().Add(rank, frame.seq);
    needed = Missing();
  }
  if (!needed.ok()) BeginAbort(needed);
  EndMessagesOfGone();
  return absl::OkStatus();
}

void SpanningState::OnLost(int peer, const absl::Status& why) {
  const int member = layout().member_at(peer);
  if (member < 0) return;
  absl::Status status;
  {
    absl::MutexLock lock(&life_->mutex());
    life_->memory().Lose(member);
    // The member departed in order: it has sent all that its peers need.
    if (life_->departures().HasDeparted(member)) return life_->EndIfReleased();
    std::string ranks;
    for (int r : layout().ranks_of(member)) absl::StrAppend(&ranks, " ", r);
    status = base::WithMessage(
        why,
        absl::StrCat(why.message(), "; its ranks in group ", context().name(),
                     ":", ranks, "; ", life_->waits().First()));
    life_->EndIfReleased();
  }
  BeginAbort(status);
}

}  // namespace troupe::comm::internal
