#include "comm/local/group_state.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/collective_kinds.h"

namespace troupe::comm::internal {
namespace {

constexpr std::uint64_t kOneEvent = std::uint64_t{1} << 32;
constexpr std::uint64_t kNextMask = (std::uint64_t{1} << 20) - 1;

static_assert(kLocalGroupSizeMax <= kReductionSourcesMax,
              "a group is one tree");
static_assert(kLocalGroupSizeMax <= kRootsMax, "a signature holds any root");

absl::Status CouldNotBegin(int rank, const std::string& what,
                           const absl::Status& after) {
  return base::WithMessage(
      after, absl::StrCat("rank ", rank, " could not begin ", what, ": ",
                          after.message()));
}

char* HostAddress(const nn::Tensor& tensor) {
  return !tensor.defined() || tensor.is_meta() || tensor.numel() == 0
             ? nullptr
             : static_cast<char*>(tensor.raw());
}

}  // namespace

GroupState::GroupState(const LocalGroupOptions& options)
    : size_(options.size),
      chunk_bytes_(options.chunk_bytes),
      in_flight_max_(options.in_flight_max),
      in_flight_log2_(__builtin_ctz(options.in_flight_max)),
      operations_(new Operation[options.in_flight_max]),
      slots_(new Slot[static_cast<std::size_t>(options.in_flight_max) *
                      options.size]),
      since_(new Since[static_cast<std::size_t>(options.in_flight_max) *
                       options.size]),
      counts_(new std::unique_ptr<const PairCounts>[static_cast<std::size_t>(
                                                        options.in_flight_max) *
                                                    options.size]),
      ranks_(new Rank[options.size]),
      messages_(options.size) {}

void GroupState::Join(int rank, std::uint64_t seq, const Collective& collective,
                      const Event& event, bool with_event) {
  Slot& slot = slots(seq)[rank];
  const std::uint64_t signature = Pack(collective);
  slot.range = HostAddress(collective.range);
  if (RuleOf(collective.kind).updates) {
    slot.update = collective.update.get();
  } else {
    slot.input =
        collective.input.defined() ? HostAddress(collective.input) : slot.range;
  }
  if (ByCounts(signature)) {
    counts_[&slot - slots_.get()] =
        std::make_unique<const PairCounts>(collective);
  }
  if (with_event) slot.event = event;
  slot.signature.store(signature, std::memory_order_release);
  slot.chunks_done.store(0, std::memory_order_relaxed);
  const Cut cut = CutOf(seq, rank, signature);
  const std::uint64_t share_chunks =
      ByCounts(signature) ? cut.chunks()
                          : cut.ShareBegin(rank + 1) - cut.ShareBegin(rank);
  slot.claim.store(generation(seq) << 40 | share_chunks << 20,
                   std::memory_order_relaxed);
  slot.stage.store(2 * (seq + 1), std::memory_order_release);
}

void GroupState::Arm(int rank, std::uint64_t seq, bool with_event,
                     Effects* effects) {
  Operation& operation = this->operation(seq);
  slots(seq)[rank].stage.store(2 * (seq + 1) + 1, std::memory_order_release);
  // Read before `armed` counts this rank: the operation may be finished
  // afterwards.
  const std::uint64_t signature =
      slots(seq)[rank].signature.load(std::memory_order_relaxed);
  const std::uint64_t mine = with_event ? kOneEvent + 1 : 1;
  const std::uint64_t armed = operation.armed.fetch_add(mine) + mine;
  if (static_cast<std::uint32_t>(armed) < static_cast<std::uint32_t>(size_)) {
    // Depart() stores departed_first_ before it reads `armed`.
    if (departed_first_.load() <= seq) effects->failure = Departed(seq);
    return;
  }
  // Ranks that armed before may not have seen their peers yet: the last one
  // sees all.
  if (!Agree(rank, seq, effects)) return;
  const bool by_counts = ByCounts(signature);
  if (!by_counts && CutOf(seq, rank, signature).chunks() == 0) {
    Finish(seq, effects);
    return;
  }
  if (armed >= kOneEvent) {
    runnable_version_.fetch_add(1);
    effects->wake = true;
  }
  // This comparison counts as one more share, so the operation waits for it.
  if (by_counts && PairsAgree(seq, effects)) {
    ShareDone(seq, SharesByCounts(seq), effects);
  }
}

bool GroupState::Claim(Slot* slot, std::uint64_t seq, std::uint64_t* chunk,
                       std::uint64_t* share_chunks) const {
  std::uint64_t word = slot->claim.load(std::memory_order_relaxed);
  while (word >> 40 == generation(seq)) {
    *chunk = word & kNextMask;
    *share_chunks = (word >> 20) & kNextMask;
    if (*chunk == *share_chunks) return false;
    if (slot->claim.compare_exchange_weak(word, word + 1,
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool GroupState::WorkOn(int rank, std::uint64_t seq, Effects* effects) {
  if (!effects->failure.ok()) return false;
  Slot* const all = slots(seq);
  for (int i = 0; i < size_; ++i) {
    const int share = rank + i < size_ ? rank + i : rank + i - size_;
    std::uint64_t chunk;
    std::uint64_t share_chunks;
    if (!Claim(&all[share], seq, &chunk, &share_chunks)) continue;
    // The claim keeps the operation alive: it cannot finish without this chunk.
    if (!Agree(rank, seq, effects)) return false;
    const std::uint64_t signature =
        all[rank].signature.load(std::memory_order_relaxed);
    const Cut cut = CutOf(seq, share, signature);
    effects->failure = Compute(rank, seq, cut, share, chunk);
    if (!effects->failure.ok()) return false;
    const bool share_done =
        share_chunks == 1 ||
        all[share].chunks_done.fetch_add(1, std::memory_order_acq_rel) + 1 ==
            share_chunks;
    // The operation may be finished once this share is counted.
    if (share_done) {
      ShareDone(
          seq,
          ByCounts(signature) ? SharesByCounts(seq) : cut.shares_with_chunks(),
          effects);
    }
    return true;
  }
  return false;
}

int GroupState::SharesByCounts(std::uint64_t seq) const {
  const Slot* const all = slots(seq);
  int shares = 1;  // counted for PairsAgree(), in Arm()
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t word = all[r].claim.load(std::memory_order_relaxed);
    if (((word >> 20) & kNextMask) > 0) ++shares;
  }
  return shares;
}

void GroupState::ShareDone(std::uint64_t seq, int shares, Effects* effects) {
  if (operation(seq).shares_done.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      shares) {
    Finish(seq, effects);
  }
}

bool GroupState::Agree(int rank, std::uint64_t seq, Effects* effects) const {
  const Slot* const all = slots(seq);
  const std::uint64_t signature =
      all[rank].signature.load(std::memory_order_relaxed);
  for (int r = 0; r < size_; ++r) {
    if (all[r].signature.load(std::memory_order_acquire) != signature) {
      // The slots may be those of a later operation by now.
      if (operation(seq).finished.load(std::memory_order_acquire) > seq) break;
      effects->failure = Mismatch(seq, std::min(r, rank), std::max(r, rank));
      return false;
    }
  }
  return true;
}

bool GroupState::PairsAgree(std::uint64_t seq, Effects* effects) const {
  for (int from = 0; from < size_; ++from) {
    for (int to = 0; to < size_; ++to) {
      const std::int64_t sent = counts(seq, from).sent[to];
      const std::int64_t expected = counts(seq, to).expected[from];
      if (sent == expected) continue;
      effects->failure =
          Differs(seq, UnequalCounts(from, sent, to, expected).message());
      return false;
    }
  }
  return true;
}

void GroupState::Finish(std::uint64_t seq, Effects* effects) {
  Operation& operation = this->operation(seq);
  if (operation.armed.load(std::memory_order_relaxed) >= kOneEvent) {
    Slot* const all = slots(seq);
    for (int r = 0; r < size_; ++r) {
      effects->finished.push_back(std::exchange(all[r].event, Event()));
    }
  }
  operation.shares_done.store(0, std::memory_order_relaxed);
  operation.armed.store(0, std::memory_order_relaxed);
  operation.finished.store(seq + 1, std::memory_order_release);
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
      const std::uint64_t signature =
          slots(seq)[rank].signature.load(std::memory_order_relaxed);
      effects.failure =
          CouldNotBegin(rank, Unpack(signature).ToString(), after);
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
  for (int r = 0; r < size_; ++r) {
    while (ranks_[r].inside.load()) sched_yield();
  }
  while (others_inside_.load() > 0) sched_yield();
  for (int r = 0; r < size_; ++r) waits_at_abort_.push_back(WaitsNow(r));
  std::vector<Event> pending;
  for (std::uint64_t i = 0; i < in_flight_max_ * size_; ++i) {
    pending.push_back(std::exchange(slots_[i].event, Event()));
  }
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

void GroupState::SetWakeup(int rank, std::function<void()> wakeup) {
  ranks_[rank].wakeup.Set(std::move(wakeup));
}

void GroupState::Wake(bool idle_only) {
  for (int r = 0; r < size_; ++r) {
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
  if (operation(joined).armed.load() != 0) Abort(Departed(joined));
  for (int r = 0; r < size_; ++r) {
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
  for (int r = 0; r < size_; ++r) {
    if (r != waiting && (peer == kAnySource || r == peer) &&
        ranks_[r].departed_at.load() != kStays) {
      gone.push_back(r);
    }
  }
  // A receive from any source needs one peer. In a group of one rank it
  // receives from itself.
  const std::size_t needed = peer == kAnySource ? size_ - 1 : 1;
  if (gone.empty() || gone.size() < needed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      RankText(gone), " left the group, and rank ", waiting,
      " waits for a message of, or to, ", gone.size() == 1 ? "it" : "them"));
}

absl::Status GroupState::Departed(std::uint64_t seq) const {
  std::vector<int> gone;
  for (int r = 0; r < size_; ++r) {
    if (ranks_[r].departed_at.load() <= seq) gone.push_back(r);
  }
  return absl::UnavailableError(absl::StrCat(
      RankText(gone), " left the group before collective ", seq, " of it"));
}

void GroupState::CompareWithPeers(int rank, std::uint64_t seq,
                                  Effects* effects) const {
  const Slot* const all = slots(seq);
  for (int r = 0; r < size_; ++r) {
    if (all[r].stage.load(std::memory_order_acquire) / 2 == seq + 1 &&
        all[r].signature.load(std::memory_order_acquire) !=
            all[rank].signature.load(std::memory_order_relaxed) &&
        operation(seq).finished.load(std::memory_order_acquire) <= seq) {
      effects->failure = Mismatch(seq, std::min(r, rank), std::max(r, rank));
    }
  }
}

absl::Status GroupState::Mismatch(std::uint64_t seq, int a, int b) const {
  const Slot* const all = slots(seq);
  return Differs(seq, absl::StrCat("rank ", a, " started ",
                                   Unpack(all[a].signature.load()).ToString(),
                                   ", rank ", b, " started ",
                                   Unpack(all[b].signature.load()).ToString()));
}

absl::Status GroupState::Differs(std::uint64_t seq, absl::string_view how) {
  return absl::FailedPreconditionError(
      absl::StrCat("collective ", seq, " of the group differs: ", how));
}

}  // namespace troupe::comm::internal
