#include "comm/local/group_state.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/local/agreement.h"
#include "comm/local/group_waits.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

static_assert(kLocalGroupSizeMax <= kReductionSourcesMax,
              "a group is one tree");
static_assert(kLocalGroupSizeMax <= kRootsMax, "a signature holds any root");

absl::Status CouldNotBegin(int rank, const std::string& what,
                           const absl::Status& after) {
  return base::WithMessage(
      after, absl::StrCat("rank ", rank, " could not begin ", what, ": ",
                          after.message()));
}

}  // namespace

GroupState::GroupState(const LocalGroupOptions& options)
    : ring_(options.size, options.in_flight_max),
      work_(&ring_, options.chunk_bytes),
      ranks_(new Rank[options.size]),
      messages_(options.size) {}

void GroupState::Join(int rank, std::uint64_t seq, const Collective& collective,
                      const Event& event, bool with_event) {
  const std::uint64_t signature =
      ring_.Fill(rank, seq, collective, with_event ? &event : nullptr);
  const Cut cut = work_.CutOf(seq, rank, signature);
  ring_.Open(rank, seq,
             ByCounts(signature)
                 ? cut.chunks()
                 : cut.ShareBegin(rank + 1) - cut.ShareBegin(rank));
}

void GroupState::Arm(int rank, std::uint64_t seq, bool with_event,
                     Effects* effects) {
  ring_.SetArmed(rank, seq);
  // Read before `armed` counts this rank: the operation may be finished
  // afterwards.
  const std::uint64_t signature = ring_.signature(seq, rank);
  const OperationRing::Armed armed = ring_.CountArmed(seq, with_event);
  if (!armed.all) {
    // Depart() stores departed_first_ before it reads `armed`.
    if (departed_first_.load() <= seq) effects->failure = Departed(seq);
    return;
  }
  // Ranks that armed before may not have seen their peers yet: the last one
  // sees all.
  if (!Agree(rank, seq, effects)) return;
  const bool by_counts = ByCounts(signature);
  if (!by_counts && work_.CutOf(seq, rank, signature).chunks() == 0) {
    ring_.Finish(seq, &effects->finished);
    return;
  }
  if (armed.event) {
    runnable_version_.fetch_add(1);
    effects->wake = true;
  }
  if (!by_counts) return;
  // This comparison counts as one more share, so the operation waits for it.
  const absl::Status equal = CompareCounts(ring_, seq);
  if (!equal.ok()) {
    effects->failure = equal;
  } else {
    ShareDone(seq, SharesByCounts(seq), effects);
  }
}

bool GroupState::WorkOn(int rank, std::uint64_t seq, Effects* effects) {
  if (!effects->failure.ok()) return false;
  for (int i = 0; i < size(); ++i) {
    const int share = rank + i < size() ? rank + i : rank + i - size();
    std::uint64_t chunk;
    std::uint64_t share_chunks;
    if (!ring_.Claim(share, seq, &chunk, &share_chunks)) continue;
    // The claim keeps the operation alive: it cannot finish without this chunk.
    if (!Agree(rank, seq, effects)) return false;
    const std::uint64_t signature = ring_.signature(seq, rank);
    const Cut cut = work_.CutOf(seq, share, signature);
    effects->failure = work_.Compute(rank, seq, cut, share, chunk);
    if (!effects->failure.ok()) return false;
    // The operation may be finished once this share is counted.
    if (ring_.EndChunk(share, seq, share_chunks)) {
      ShareDone(
          seq,
          ByCounts(signature) ? SharesByCounts(seq) : cut.shares_with_chunks(),
          effects);
    }
    return true;
  }
  return false;
}

// One share more is counted for CompareCounts(), in Arm().
int GroupState::SharesByCounts(std::uint64_t seq) const {
  return ring_.SharesWithChunks(seq) + 1;
}

void GroupState::ShareDone(std::uint64_t seq, int shares, Effects* effects) {
  if (ring_.EndShare(seq, shares)) ring_.Finish(seq, &effects->finished);
}

bool GroupState::Agree(int rank, std::uint64_t seq, Effects* effects) const {
  const absl::Status agreed = CheckAgreement(ring_, rank, seq);
  if (agreed.ok()) return true;
  effects->failure = agreed;
  return false;
}

void GroupState::CompareWithPeers(int rank, std::uint64_t seq,
                                  Effects* effects) const {
  const absl::Status agreed = CompareWithJoined(ring_, rank, seq);
  if (!agreed.ok()) effects->failure = agreed;
}

void GroupState::Apply(Effects* effects) {
  if (!effects->failure.ok()) Abort(effects->failure);
  if (effects->wake) Wake(/*idle_only=*/true);
  // A callback may call Apply() again, with effects of its own.
  const auto finished = std::exchange(effects->finished, {});
  effects->wake = false;
  effects->failure = absl::OkStatus();
  for (const Event& event : finished) event.Complete(absl::OkStatus());
}

void GroupState::ArmLater(int rank, std::uint64_t seq,
                          const absl::Status& after) {
  Effects effects;
  others_inside_.fetch_add(1);
  if (!aborted()) {
    if (after.ok()) {
      Arm(rank, seq, /*with_event=*/true, &effects);
    } else {
      const Collective started = Unpack(ring_.signature(seq, rank));
      effects.failure = CouldNotBegin(rank, started.ToString(), after);
    }
  }
  others_inside_.fetch_sub(1);
  Apply(&effects);
}

void GroupState::Deliver(int to, Delivery delivery, Effects* effects) {
  effects->failure = delivery.Check(to);
  const Event after = delivery.offer.after;
  const auto may_copy = [&] {
    return effects->failure.ok() && after.ready() && after.status().ok();
  };
  if (!may_copy()) {
    const std::uint64_t id = delivery.offer.id;
    messages_.Hold(to, std::move(delivery));
    // `after` may have become ready before the delivery was stored.
    if (!may_copy()) return;
    std::optional<Delivery> held = messages_.Release(id);
    if (!held) return;
    delivery = *std::move(held);
  }
  delivery.Copy();
  effects->finished.push_back(std::move(delivery.offer.done));
  effects->finished.push_back(std::move(delivery.receive.done));
}

void GroupState::DeliverLater(int rank, std::uint64_t id,
                              const std::string& what,
                              const absl::Status& after) {
  Effects effects;
  others_inside_.fetch_add(1);
  if (!after.ok()) {
    effects.failure = CouldNotBegin(rank, what, after);
  } else if (!aborted()) {
    if (const auto held = messages_.Release(id)) {
      held->Copy();
      effects.finished = {held->offer.done, held->receive.done};
    }
  }
  others_inside_.fetch_sub(1);
  Apply(&effects);
}

void GroupState::Abort(absl::Status status) {
  if (status.ok()) status = absl::CancelledError("the group was aborted");
  {
    absl::MutexLock lock(&mutex_);
    if (aborted()) return;
    status_ = status;
    phase_.store(Phase::kAborting);
  }
  for (int r = 0; r < size(); ++r) {
    while (ranks_[r].inside.load()) sched_yield();
  }
  while (others_inside_.load() > 0) sched_yield();
  for (int r = 0; r < size(); ++r) {
    waits_at_abort_.push_back(WaitsOf(ring_, messages_, r));
  }
  const std::vector<Event> pending = ring_.TakeEvents();
  phase_.store(Phase::kAborted);
  for (const Event& event : pending) event.Complete(status);
  messages_.Close(status);
  Wake(/*idle_only=*/false);
}

absl::Status GroupState::AwaitAbort() const {
  while (phase_.load() != Phase::kAborted) sched_yield();
  return abort_status();
}

absl::Status GroupState::abort_status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

std::vector<Waiting> GroupState::Waits(int rank) const {
  return phase_.load() == Phase::kAborted ? waits_at_abort_[rank]
                                          : WaitsOf(ring_, messages_, rank);
}

void GroupState::SetWakeup(int rank, std::function<void()> wakeup) {
  ranks_[rank].wakeup.Set(std::move(wakeup));
}

void GroupState::Wake(bool idle_only) {
  for (int r = 0; r < size(); ++r) {
    if (!ranks_[r].idle.exchange(false) && idle_only) continue;
    ranks_[r].wakeup.Call();
  }
}

void GroupState::Depart(int rank, std::uint64_t joined) {
  ranks_[rank].departed_at.store(joined);
  std::uint64_t first = departed_first_.load();
  while (joined < first &&
         !departed_first_.compare_exchange_weak(first, joined)) {
  }
  // Other ranks read departed_first_ after they have armed.
  if (ring_.operation(joined).armed.load() != 0) Abort(Departed(joined));
  for (int r = 0; r < size(); ++r) {
    if (r == rank) continue;
    for (int peer : {rank, kAnySource}) {
      if (!messages_.Waits(r, peer)) continue;
      const absl::Status gone = CheckPeerIsThere(r, peer);
      if (!gone.ok()) Abort(gone);
    }
  }
}

absl::Status GroupState::CheckPeerIsThere(int waiting, int peer) const {
  std::vector<int> gone;
  for (int r = 0; r < size(); ++r) {
    if (r != waiting && (peer == kAnySource || r == peer) &&
        ranks_[r].departed_at.load() != kStays) {
      gone.push_back(r);
    }
  }
  // A receive from any source needs one peer. In a group of one rank it
  // receives from itself.
  const std::size_t needed = peer == kAnySource ? size() - 1 : 1;
  if (gone.empty() || gone.size() < needed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      RankText(gone), " left the group, and rank ", waiting,
      " waits for a message of, or to, ", gone.size() == 1 ? "it" : "them"));
}

absl::Status GroupState::Departed(std::uint64_t seq) const {
  std::vector<int> gone;
  for (int r = 0; r < size(); ++r) {
    if (ranks_[r].departed_at.load() <= seq) gone.push_back(r);
  }
  return absl::UnavailableError(absl::StrCat(
      RankText(gone), " left the group before collective ", seq, " of it"));
}

}  // namespace troupe::comm::internal
