#include "comm/spanning/spanning_state.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/field_error.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

std::vector<int> ProcessesOf(const FabricGroupOptions& options,
                             const FabricOptions& fabric) {
  std::vector<int> processes;
  for (int rank : options.ranks) processes.push_back(fabric.process_of[rank]);
  return processes;
}

TransferSettings SettingsOf(const FabricOptions& fabric,
                            const GroupLayout& layout) {
  TransferSettings settings;
  for (int m = 0; m < layout.members(); ++m) {
    const Link* const link = fabric.links[layout.process_of(m)].get();
    const std::size_t of_link = link == nullptr ? 0 : link->eager_bytes();
    settings.eager_bytes.push_back(fabric.eager_bytes.value_or(of_link));
  }
  settings.piece_bytes = fabric.piece_bytes;
  settings.two_step = fabric.two_step;
  return settings;
}

}  // namespace

SpanningState::SpanningState(std::shared_ptr<Switchboard> board,
                             std::shared_ptr<Courier> courier,
                             std::uint32_t group, FabricGroupOptions options)
    : board_(std::move(board)),
      group_(group),
      options_(std::move(options)),
      layout_(ProcessesOf(options_, board_->options()), board_->process()),
      settings_(SettingsOf(board_->options(), layout_)),
      tree_(&layout_),
      wakeups_(new Wakeup[layout_.ranks_of(layout_.self()).size()]),
      messages_(board_.get(), std::move(courier), group, &layout_),
      next_(layout_.ranks_of(layout_.self()).size()),
      sending_to_(layout_.members()),
      placed_from_(layout_.members()),
      lent_to_(layout_.members()),
      let_go_all_(layout_.members()) {}

absl::Status SpanningState::AdmitLocked(int place) {
  if (!status_.ok()) return status_;
  const std::uint64_t head =
      ops_.empty() ? next_[place] : std::min(ops_.begin()->first, next_[place]);
  const std::uint64_t in_flight = next_[place] - head;
  if (in_flight < static_cast<std::uint64_t>(options_.in_flight_max)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", layout_.ranks_of(layout_.self())[place], " has ", in_flight,
      " collectives in flight, as many as in_flight_max allows; the oldest is "
      "number ",
      head, "; wait for it"));
}

SpanningState::OpPtr SpanningState::FindOrMake(std::uint64_t seq) {
  OpPtr& op = ops_[seq];
  if (op != nullptr) return op;
  if (spare_ == nullptr) return op = std::make_shared<Operation>(seq, layout_);
  op = std::move(spare_);
  op->seq = seq;
  return op;
}

void SpanningState::Recycle(OpPtr op) {
  absl::MutexLock lock(&mutex_);
  if (op.use_count() > 1 || spare_ != nullptr || !status_.ok()) return;
  op->Reuse();
  spare_ = std::move(op);
}

absl::StatusOr<SpanningState::OpPtr> SpanningState::Join(
    int place, const Collective& collective, const Event& event) {
  OpPtr op;
  absl::Status differs;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) NoteRefused(place, collective);
    TROUPE_RETURN_IF_ERROR(AdmitLocked(place));
    op = FindOrMake(next_[place]++);
    op->Join(place, collective, event);
    differs = CompareLocked(*op);
    op->differs |= !differs.ok();
  }
  if (!differs.ok()) BeginAbort(differs);
  return op;
}

bool SpanningState::AllAlike(const Operation& op) const {
  const Operation::Rank& first = op.ranks[std::max(op.first_place, 0)];
  bool any = op.first_place >= 0;
  std::uint64_t signature = any ? first.signature : 0;
  std::uint64_t replicas = any ? PackReplicas(first.collective) : 0;
  const auto is_like = [&](std::uint64_t other, std::uint64_t others) {
    if (!std::exchange(any, true)) {
      signature = other;
      replicas = others;
    }
    return signature == other && replicas == others;
  };
  for (const Operation::Rank& here : op.ranks) {
    if (here.joined && !is_like(here.signature, PackReplicas(here.collective)))
      return false;
  }
  for (const Note& note : op.notes) {
    if (note.here && !is_like(note.signature, note.replicas)) return false;
  }
  return true;
}

absl::Status SpanningState::CompareLocked(const Operation& op) const {
  if (AllAlike(op)) return absl::OkStatus();
  struct Side {
    int rank;
    std::uint64_t signature, replicas;
  };
  std::vector<Side> sides;
  for (int rank : layout_.ranks_of(layout_.self())) {
    const Operation::Rank& here = op.ranks[layout_.place_of(rank)];
    if (here.joined) {
      sides.push_back({rank, here.signature, PackReplicas(here.collective)});
    }
  }
  for (const Note& note : op.notes) {
    if (note.here) sides.push_back({note.rank, note.signature, note.replicas});
  }
  std::sort(sides.begin(), sides.end(),
            [](const Side& a, const Side& b) { return a.rank < b.rank; });
  const auto named = [&](int rank) {
    const int process = layout_.process_of(layout_.member_of(rank));
    return absl::StrCat("rank ", options_.ranks[rank], " of the job in ",
                        board_->NameOf(process));
  };
  for (std::size_t i = 1; i < sides.size(); ++i) {
    const Side& a = sides[0];
    const Side& b = sides[i];
    if (a.signature == b.signature && a.replicas == b.replicas) continue;
    const bool kinds = a.signature != b.signature;
    const std::string what_a =
        kinds ? Unpack(a.signature).ToString() : DescribeReplicas(a.replicas);
    const std::string what_b =
        kinds ? Unpack(b.signature).ToString() : DescribeReplicas(b.replicas);
    const char* const verb = kinds ? " started " : " updates ";
    return absl::FailedPreconditionError(absl::StrCat(
        "collective ", op.seq, " of the group differs: rank ", a.rank, verb,
        what_a, ", rank ", b.rank, verb, what_b, " (group ", options_.name,
        "; ", named(a.rank), ", ", named(b.rank), ")"));
  }
  return absl::OkStatus();
}

absl::Status SpanningState::Departed(const Operation& op) const {
  std::vector<int> gone;
  for (const auto& [rank, joined] : departed_) {
    if (joined <= op.seq) gone.push_back(rank);
  }
  if (gone.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      Ranks(gone), " left the group before collective ", op.seq, " of it"));
}

void SpanningState::Arm(int place, const OpPtr& op, const absl::Status& after) {
  absl::Status failure;
  bool all = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    if (!after.ok()) {
      failure = base::WithMessage(
          after, absl::StrCat("rank ", layout_.ranks_of(layout_.self())[place],
                              " could not begin ",
                              op->ranks[place].collective.ToString(), ": ",
                              after.message()));
    } else {
      op->ranks[place].armed = true;
      ++op->armed_count;
      failure = Departed(*op);
      all = op->all_armed() && failure.ok();
      if (all) ++busy_;  // the notes read the ranks' inputs
    }
  }
  if (!failure.ok()) return BeginAbort(failure);
  if (all) Announce(op);
}

void SpanningState::Announce(const OpPtr& op) {
  const absl::Status planned = op->MakePlan(layout_, settings_);
  std::string references;
  if (planned.ok()) {
    references = References(*op);
    absl::MutexLock lock(&mutex_);
    op->planned = true;
    if (!status_.ok()) references.clear();
    if (!references.empty()) LendAll(op.get());
  }
  if (planned.ok()) {
    Frame note = MakeFrame(FrameType::kNote, group_, op->seq);
    note.part =
        static_cast<std::uint16_t>(layout_.ranks_of(layout_.self()).front());
    note.tag = references.empty() ? 0 : 1;
    note.words[0] = op->ranks[0].signature;
    note.words[2] = PackReplicas(op->first());
    for (int m = 0; m < layout_.members(); ++m) {
      if (m == layout_.self()) continue;
      note.words[1] = PackSettings(settings_, m);
      std::string built;
      absl::string_view payload = OnlyPart(*op, m);
      if (payload.empty() || !references.empty()) {
        payload = built = NotePayload(*op, m) + references;
      }
      note.bytes = static_cast<std::uint32_t>(payload.size());
      board_->Send(layout_.process_of(m), note, payload.data(),
                   /*done=*/nullptr, /*copy=*/true);
    }
  }
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    --busy_;
    EndIfLetGo();
    if (planned.ok() && status_.ok()) {
      op->announced = true;
      BeginIfAllHere(op, &out);
    }
  }
  if (!planned.ok()) return BeginAbort(planned);
  Flush(op, &out);
}

// Returns the content of a note that is a single part in one rank's memory;
// otherwise "".
absl::string_view SpanningState::OnlyPart(const Operation& op,
                                          int member) const {
  const TransferPlan& plan = *op.plan;
  const std::vector<int>& here = layout_.ranks_of(layout_.self());
  if (op.first().by_counts() || plan.pieces() != 1 || here.size() != 1 ||
      !plan.SendsParts(0, layout_.self(), member) ||
      !plan.eager(layout_.self(), member)) {
    return "";
  }
  return {op.Input(0, here.front()), plan.BytesOf(0)};
}

std::string SpanningState::NotePayload(const Operation& op, int member) const {
  std::string payload;
  const auto append = [&](const void* data, std::size_t bytes) {
    payload.append(static_cast<const char*>(data), bytes);
  };
  if (op.first().by_counts()) {
    const auto append_counts = [&](bool sent) {
      for (int here : layout_.ranks_of(layout_.self())) {
        const Collective& given = op.ranks[layout_.place_of(here)].collective;
        for (int there : layout_.ranks_of(member)) {
          append(sent ? &given.send_counts[there] : &given.recv_counts[there],
                 sizeof(std::int64_t));
        }
      }
    };
    append_counts(/*sent=*/true);
    append_counts(/*sent=*/false);
  }
  const TransferPlan& plan = *op.plan;
  if (!plan.eager(layout_.self(), member)) return payload;
  plan.ForEachPart(layout_.self(), member, [&](int i, int node) {
    if (node < 0)
      return append(op.Input(i, plan.block_of(i).block.from), plan.BytesOf(i));
    const GroupLayout::Node& whole = layout_.nodes()[node];
    if (whole.ranks() == 1) {
      return append(op.Input(i, whole.begin), plan.BytesOf(i));
    }
    const std::size_t at = payload.size();
    payload.resize(at + plan.BytesOf(i));
    void* const to = &payload[at];
    ReduceNode(op, i, node, to);
  });
  return payload;
}

void SpanningState::ReduceNode(const Operation& op, int i, int node,
                               void* to) const {
  const GroupLayout::Node& whole = layout_.nodes()[node];
  const void* sources[kReductionSourcesMax];
  for (int r = whole.begin; r < whole.end; ++r) {
    sources[r - whole.begin] = op.Input(i, r);
  }
  Reduction inner = op.reduction;
  inner.ranks = 0;
  ReduceTree(inner, absl::MakeConstSpan(sources, whole.ranks()),
             absl::MakeConstSpan(&to, 1),
             static_cast<std::size_t>(op.plan->piece(i).count));
}

void SpanningState::BeginAbort(const absl::Status& why) {
  const absl::Status status =
      why.ok() ? absl::CancelledError("the group was aborted") : why;
  bool tell = true;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    NoteWaits();
    status_ = status;
    EndIfLetGo();
    // If all ranks here have departed in order, the peers may still finish
    // well.
    tell = !HasDeparted(layout_.self());
  }
  // The events' callbacks may drive the fabric: not here, perhaps within a
  // link.
  board_->Post(
      [self = shared_from_this(), status] { self->messages_.Close(status); });
  if (tell) {
    Frame frame = MakeFrame(FrameType::kAbort, group_, 0);
    frame.words[0] = static_cast<std::uint64_t>(status.code());
    SendToAll(frame, status.message().substr(0, kAbortTextMax));
  }
  LetGoAllIfDue();
}

void SpanningState::SendToAll(const Frame& frame, absl::string_view text) {
  Frame sent = frame;
  sent.bytes = static_cast<std::uint32_t>(text.size());
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == layout_.self()) continue;
    board_->Send(layout_.process_of(m), sent, text.data(), /*done=*/nullptr,
                 /*copy=*/true);
  }
}

void SpanningState::EndIfLetGo() {
  if (status_.ok() || busy_ > 0 || ending_) return;
  ending_ = true;
  std::vector<Event> events;
  for (const auto& [seq, op] : ops_) {
    for (const Operation::Rank& rank : op->ranks) {
      if (rank.joined) events.push_back(rank.event);
    }
  }
  // Buffers, and the ranks' inputs, are no longer needed.
  board_->Post([self = shared_from_this(), ops = std::move(ops_),
                events = std::move(events), status = status_] {
    for (const Event& event : events) event.Complete(status);
    self->ended_.store(true, std::memory_order_release);
    self->Wake();
  });
  ops_.clear();
  to_send_.clear();
}

void SpanningState::Abort(const absl::Status& why) {
  BeginAbort(why);
  const absl::Time patience = absl::Now() + board_->options().abort_grace;
  while (!ended() || !messages_.LetGo()) {
    if (board_->Progress()) continue;
    if (absl::Now() >= patience) CloseHolders();
    sched_yield();
  }
  // Tasks must still report the messages that have ended.
  while (board_->has_tasks()) board_->Progress();
}

void SpanningState::CloseHolders() {
  const absl::Status why = absl::CancelledError(absl::StrCat(
      "group ", options_.name, " was aborted, and the link did not let go"));
  std::vector<int> holders = messages_.Holders();
  {
    absl::MutexLock lock(&mutex_);
    for (int m = 0; m < layout_.members(); ++m) {
      if (sending_to_[m] + placed_from_[m] + lent_to_[m] > 0) {
        holders.push_back(layout_.process_of(m));
      }
    }
  }
  for (int process : holders) board_->Close(process, why);
}

absl::Status SpanningState::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void SpanningState::Depart(int place) {
  const int rank = layout_.ranks_of(layout_.self())[place];
  wakeups_[place].Set(nullptr);
  Frame frame = MakeFrame(FrameType::kDepart, group_, 0);
  frame.part = static_cast<std::uint16_t>(rank);
  std::string pending;
  absl::Status needed;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    pending = PendingOf(place);
    // It departs in order only if none of its work is left.
    if (pending.empty()) {
      frame.seq = departed_[rank] = next_[place];
      needed = Missing();
    }
  }
  if (!pending.empty()) {
    return Abort(absl::UnavailableError(
        absl::StrCat("rank ", rank, " left the group during ", pending)));
  }
  if (!needed.ok()) return Abort(needed);
  SendToAll(frame, "");
  EndMessagesOfGone();
}

absl::Status SpanningState::Missing() const {
  absl::Status needed;
  for (const auto& [seq, op] : ops_) {
    if (op->armed_count > 0) needed.Update(Departed(*op));
  }
  return needed;
}

bool SpanningState::HasDeparted(int member) const {
  const std::vector<int>& ranks = layout_.ranks_of(member);
  return std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
    mutex_.AssertHeld();
    return departed_.count(rank) > 0;
  });
}

void SpanningState::SetWakeup(int place, std::function<void()> wakeup) {
  wakeups_[place].Set(std::move(wakeup));
}

void SpanningState::Wake() {
  const std::size_t places = layout_.ranks_of(layout_.self()).size();
  for (std::size_t p = 0; p < places; ++p) wakeups_[p].Call();
}

}  // namespace troupe::comm::internal
