// Handles the frames that a spanning group receives. None is trusted: an
// invalid frame closes the link, with a message.

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "comm/flow.h"
#include "comm/signature.h"
#include "comm/spanning/spanning_state.h"
#include "comm/spanning/wire.h"

namespace troupe::comm::internal {

absl::Status SpanningState::Broke(int member, absl::string_view rule) const {
  return absl::InvalidArgumentError(
      absl::StrCat(board_->NameOf(layout_.process_of(member)),
                   " broke the protocol of group ", options_.name, ": ", rule));
}

char* SpanningState::Place(int peer, const Frame& frame) {
  const int member = layout_.member_at(peer);
  if (member < 0) return nullptr;
  absl::MutexLock lock(&mutex_);
  Target target;
  if (!Find(member, frame, &target).ok() || target.op == nullptr) {
    return nullptr;
  }
  PieceState& piece = target.op->pieces[target.piece];
  PieceState::Arrived& arrived =
      target.node < 0 ? piece.value : piece.nodes[target.node];
  // A range that may still be sent from cannot receive yet.
  const std::vector<int>& targets = target.op->Targets(target.piece);
  const bool into_range = target.node < 0 && !target.op->updates() &&
                          !targets.empty() && piece.sends_out == 0;
  char* to;
  if (into_range) {
    to = target.op->Output(target.piece, targets.front());
  } else {
    piece.buffers.push_back(board_->staging().Take(frame.bytes));
    to = piece.buffers.back().data();
  }
  arrived.data = to;
  arrived.placed_by = member;
  ++busy_;
  ++placed_from_[member];
  return to;
}

absl::Status SpanningState::Take(int peer, const Frame& frame,
                                 const char* payload) {
  const int member = layout_.member_at(peer);
  if (member < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(board_->NameOf(peer), " has no rank in group ",
                     options_.name, ", to which it sent a frame"));
  }
  switch (TypeOf(frame)) {
    case FrameType::kNote:
      return TakeNote(member, frame, payload);
    case FrameType::kPartial:
    case FrameType::kValue:
      return TakeElements(member, frame);
    case FrameType::kCredit:
      return TakeCredit(member, frame);
    case FrameType::kAbort:
      return TakeAbort(frame, payload);
    case FrameType::kDepart:
      return TakeDepart(member, frame);
    case FrameType::kLetGo:
      return TakeLetGo(member, frame);
    case FrameType::kLetGoAll:
      return TakeLetGoAll(member);
    case FrameType::kOffer:
      return messages_.Take(peer, frame, payload);
    default:
      return Broke(member, absl::StrCat("a frame of type ", frame.type));
  }
}

absl::Status SpanningState::Find(int member, const Frame& frame,
                                 Target* target) {
  const bool partial = TypeOf(frame) == FrameType::kPartial;
  if (!partial && TypeOf(frame) != FrameType::kValue) return absl::OkStatus();
  if (!status_.ok()) return absl::OkStatus();
  const auto found = ops_.find(frame.seq);
  if (found == ops_.end() || !found->second->planned ||
      !found->second->notes[member].here || found->second->direct != nullptr) {
    return Broke(member, absl::StrCat("data of collective ", frame.seq,
                                      ", which was not announced to it"));
  }
  const OpPtr& op = found->second;
  const TransferPlan& plan = *op->plan;
  const int self = layout_.self();
  const int i = plan.Find(frame.tag, frame.words[0]);
  const int node = partial ? frame.part : -1;
  bool fits = i >= 0 && frame.bytes == plan.BytesOf(i);
  if (fits && partial) {
    fits = plan.SendsParts(i, member, self) && !plan.eager(member, self) &&
           plan.block_of(i).source == TransferPlan::kTree &&
           node < static_cast<int>(layout_.nodes().size()) &&
           layout_.nodes()[node].member == member &&
           op->pieces[i].nodes[node].data == nullptr;
  } else if (fits) {
    const bool rides_in_note = plan.block_of(i).source == member &&
                               plan.SendsParts(i, member, self) &&
                               plan.eager(member, self);
    fits = plan.ValueFrom(i, self) == member && !rides_in_note &&
           op->pieces[i].value.data == nullptr;
  }
  if (!fits) {
    return Broke(
        member,
        absl::StrCat(frame.bytes, " bytes at element ", frame.words[0],
                     " of block ", frame.tag, ", node ", frame.part, ", of ",
                     op->first().ToString(), ", collective ", frame.seq));
  }
  *target = {op, i, node};
  return absl::OkStatus();
}

absl::Status SpanningState::TakeElements(int member, const Frame& frame) {
  Outbox out;
  OpPtr op;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = ops_.find(frame.seq);
    // Place() has validated the frame, if it left an address.
    PieceState::Arrived* arrived = nullptr;
    int i = -1;
    if (found != ops_.end() && found->second->planned) {
      op = found->second;
      i = op->plan->Find(frame.tag, frame.words[0]);
      if (i >= 0 && TypeOf(frame) == FrameType::kValue) {
        arrived = &op->pieces[i].value;
      } else if (i >= 0 && frame.part < op->pieces[i].nodes.size()) {
        arrived = &op->pieces[i].nodes[frame.part];
      }
    }
    const bool placed = arrived != nullptr && arrived->placed_by == member &&
                        !arrived->whole && placed_from_[member] > 0;
    if (!placed) {
      Target ignored;
      TROUPE_RETURN_IF_ERROR(Find(member, frame, &ignored));
      // The frame was empty, or arrived while the group was being aborted.
      return status_.ok() ? Broke(member, "elements without bytes")
                          : absl::OkStatus();
    }
    --busy_;
    --placed_from_[member];
    arrived->whole = true;
    --op->pieces[i].frames_missing;
    EndIfLetGo();
    if (status_.ok()) RunIfReady(op, i, &out);
  }
  Flush(op, &out);
  return absl::OkStatus();
}

absl::Status SpanningState::TakeNote(int member, const Frame& frame,
                                     const char* payload) {
  Outbox out;
  OpPtr op;
  absl::Status differs;
  if (frame.tag != 0) HearOfLending();
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return absl::OkStatus();
    const std::uint64_t ahead =
        *std::min_element(next_.begin(), next_.end()) +
        static_cast<std::uint64_t>(options_.in_flight_max);
    const bool known = ops_.count(frame.seq) > 0;
    const bool past =
        !known && frame.seq < *std::max_element(next_.begin(), next_.end());
    if (past || frame.seq >= ahead || !IsSignature(frame.words[0]) ||
        (known && ops_[frame.seq]->notes[member].here)) {
      return Broke(member, absl::StrCat("a note of collective ", frame.seq,
                                        ", which is not to be announced"));
    }
    op = FindOrMake(frame.seq);
    Note& note = op->notes[member];
    note.here = true;
    note.rank = layout_.ranks_of(member).front();
    note.signature = frame.words[0];
    note.settings = frame.words[1];
    note.replicas = frame.words[2];
    note.by_reference = frame.tag != 0;
    ++op->notes_here;
    if (frame.bytes > 0) {
      note.payload = {payload, frame.bytes};
      if (!RunsAtOnce(*op)) {
        note.kept.assign(payload, frame.bytes);
        note.payload = note.kept;
      }
    }
    differs = CompareLocked(*op);
    op->differs |= !differs.ok();
    BeginIfAllHere(op, &out);
  }
  if (!differs.ok()) {
    BeginAbort(differs);
    return absl::OkStatus();
  }
  Flush(op, &out);
  return absl::OkStatus();
}

// Returns whether the last note that `op` waits for completes all pieces that
// use it, in this thread: then nothing forwards them, and none waits for other
// frames.
bool SpanningState::RunsAtOnce(const Operation& op) const {
  return layout_.members() == 2 && op.announced && op.small && !op.differs;
}

void SpanningState::BeginIfAllHere(const OpPtr& op, Outbox* out) {
  if (!op->announced || op->begun || op->differs ||
      op->notes_here < layout_.members() - 1) {
    return;
  }
  op->begun = true;
  Begin(op, out);
}

// Compares the counts of the member's ranks with those of ours, pair by pair:
// both processes compare the same pairs, and report the same one.
absl::Status SpanningState::ReadCounts(const Operation& op, int member,
                                       absl::string_view* payload) const {
  if (!op.first().by_counts()) return absl::OkStatus();
  struct Pair {
    std::int64_t sent = 0, expected = 0;
  };
  std::map<std::pair<int, int>, Pair> pairs;  // by sender, receiver
  const std::vector<int>& theirs = layout_.ranks_of(member);
  const std::vector<int>& mine = layout_.ranks_of(layout_.self());
  if (payload->size() < 2 * theirs.size() * mine.size() * sizeof(Pair::sent)) {
    return Broke(member, "a note that is too short for its counts");
  }
  const auto next = [&] {
    std::int64_t count;
    std::memcpy(&count, payload->data(), sizeof(count));
    payload->remove_prefix(sizeof(count));
    return count;
  };
  const auto given = [&](int rank) -> const Collective& {
    return op.ranks[layout_.place_of(rank)].collective;
  };
  for (int from : theirs) {
    for (int to : mine) {
      const std::int64_t sent = next();
      pairs[{from, to}] = {sent, given(to).recv_counts[from]};
    }
  }
  for (int to : theirs) {
    for (int from : mine) {
      const std::int64_t expected = next();
      pairs[{from, to}] = {given(from).send_counts[to], expected};
    }
  }
  for (const auto& [ranks, pair] : pairs) {
    if (pair.sent == pair.expected) continue;
    return UnequalCounts(ranks.first, pair.sent, ranks.second, pair.expected);
  }
  return absl::OkStatus();
}

absl::Status SpanningState::ReadNote(Operation* op, int member) {
  const Note& note = op->notes[member];
  absl::string_view payload = note.payload;
  const std::uint64_t mine = PackSettings(settings_, member);
  if (note.settings != mine) {
    return absl::FailedPreconditionError(absl::StrCat(
        board_->NameOf(layout_.process_of(member)), " has ",
        DescribeSettings(note.settings), ", but ",
        board_->NameOf(board_->process()), " has ", DescribeSettings(mine),
        "; set the same FabricOptions in all processes"));
  }
  TROUPE_RETURN_IF_ERROR(ReadCounts(*op, member, &payload));
  const TransferPlan& plan = *op->plan;
  const int self = layout_.self();
  const std::size_t bytes =
      plan.eager(member, self) ? plan.PartBytes(member, self) : 0;
  const std::size_t references =
      note.by_reference
          ? 2 * layout_.ranks_of(member).size() * sizeof(Reference)
          : 0;
  if (payload.size() != bytes + references) {
    return Broke(member, absl::StrCat("a note with ", payload.size(),
                                      " bytes of parts and references, not ",
                                      bytes + references));
  }
  if (bytes == 0) return absl::OkStatus();
  plan.ForEachPart(member, self, [&](int i, int node) {
    PieceState& piece = op->pieces[i];
    (node < 0 ? piece.value : piece.nodes[node]) = {payload.data(), member,
                                                    true};
    --piece.frames_missing;
    payload.remove_prefix(plan.BytesOf(i));
  });
  return absl::OkStatus();
}

absl::Status SpanningState::TakeCredit(int member, const Frame& frame) {
  Outbox out;
  OpPtr op;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return absl::OkStatus();
    const auto found = ops_.find(frame.seq);
    if (found != ops_.end() && found->second->begun) op = found->second;
    Operation::Window* const window =
        op == nullptr ? nullptr : &op->windows[member];
    if (window == nullptr || window->credits_expected == 0 ||
        window->ahead == 0) {
      return Broke(member, absl::StrCat("a credit for collective ", frame.seq));
    }
    --window->credits_expected;
    --window->ahead;
    Pump(&out);
  }
  Flush(op, &out);
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
  if (rank >= layout_.size() || layout_.member_of(rank) != member) {
    return Broke(member, absl::StrCat("the departure of rank ", rank));
  }
  absl::Status needed;
  {
    absl::MutexLock lock(&mutex_);
    departed_[rank] = frame.seq;
    needed = Missing();
  }
  if (!needed.ok()) BeginAbort(needed);
  EndMessagesOfGone();
  return absl::OkStatus();
}

void SpanningState::EndMessagesOfGone() {
  std::vector<int> gone;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [rank, joined] : departed_) gone.push_back(rank);
  }
  for (int rank : gone) {
    std::string waiting = messages_.FirstThatNeeds(rank);
    // A receive from any source fails once no other rank is left.
    if (waiting.empty() &&
        static_cast<int>(gone.size()) + 1 >= layout_.size()) {
      waiting = messages_.FirstReceive();
    }
    if (waiting.empty()) continue;
    return BeginAbort(absl::UnavailableError(
        absl::StrCat("rank ", rank, " left the group, in which ", waiting,
                     " waits for it")));
  }
}

void SpanningState::OnLost(int peer, const absl::Status& why) {
  const int member = layout_.member_at(peer);
  if (member < 0) return;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    // Payloads that it was sending will never be complete.
    busy_ -= std::exchange(placed_from_[member], 0);
    // Memory that it may still access is not reused (Switchboard::OnLost).
    let_go_all_[member] = true;
    busy_ -= std::exchange(lent_to_[member], 0);
    // The member departed in order: it has sent all that its peers need.
    if (HasDeparted(member)) return EndIfLetGo();
    std::string ranks;
    for (int r : layout_.ranks_of(member)) absl::StrAppend(&ranks, " ", r);
    status = base::WithMessage(
        why, absl::StrCat(why.message(), "; its ranks in group ", options_.name,
                          ":", ranks, "; ", FirstWait()));
    EndIfLetGo();
  }
  BeginAbort(status);
}

}  // namespace troupe::comm::internal
