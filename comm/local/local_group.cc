#include "comm/local/local_group.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/local/group_state.h"
#include "comm/local/waiter.h"
#include "comm/signature.h"

namespace troupe::comm {
namespace {

using internal::GroupState;
using internal::Waiter;

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<GroupState> state, int rank,
                    bool hands_over)
      : state_(std::move(state)), rank_(rank), hands_over_(hands_over) {}

  ~LocalCommunicator() override {
    state_->SetWakeup(rank_, nullptr);
    AdvanceHead();
    const std::string pending = head_ == next_
                                    ? state_->messages().pending(rank_).First()
                                    : state_->DescribeWait(rank_, head_);
    if (pending.empty()) {
      state_->Depart(rank_, next_);
    } else {
      Abort(absl::UnavailableError(
          absl::StrCat("rank ", rank_, " left the group during ", pending)));
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return state_->size(); }

  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    TROUPE_RETURN_IF_ERROR(Admit(collective));
    const std::uint64_t seq = next_++;
    const Event event = Event::Make();
    GroupState::Effects effects;
    state_->SetSince(rank_, seq);
    state_->Join(rank_, seq, collective, event, /*with_event=*/true);
    state_->CompareWithPeers(rank_, seq, &effects);
    const bool armed = after.ready() && after.status().ok();
    if (armed) state_->Arm(rank_, seq, /*with_event=*/true, &effects);
    state_->Leave(rank_);
    if (!armed) {
      after.OnReady(
          [state = state_, rank = rank_, seq](const absl::Status& status) {
            state->ArmLater(rank, seq, status);
          });
    }
    state_->Apply(&effects);
    return event;
  }

  absl::Status RunInline(const Collective& collective,
                         absl::Duration timeout) override {
    TROUPE_RETURN_IF_ERROR(Admit(collective));
    const std::uint64_t seq = next_++;
    GroupState::Effects effects;
    state_->Join(rank_, seq, collective, Event(), /*with_event=*/false);
    state_->Arm(rank_, seq, /*with_event=*/false, &effects);
    Waiter waiter(timeout, &spins_);
    while (!state_->finished(seq)) {
      if (state_->aborted()) {
        state_->Leave(rank_);
        return state_->AwaitAbort();
      }
      const bool worked =
          (state_->runnable(seq) && state_->WorkOn(rank_, seq, &effects)) ||
          (head_ < seq && WorkOnAny(&effects));
      if (effects.any()) {
        if (!ApplyOutside(&effects)) return Outcome(seq);
      } else if (!worked) {
        if (!waiter.Wait()) return GiveUp(seq, timeout);
        if (waiter.just_lost_patience()) {
          state_->SetSince(rank_, seq);
          state_->CompareWithPeers(rank_, seq, &effects);
        }
      }
    }
    if (head_ == seq) head_ = seq + 1;
    state_->Leave(rank_);
    if (effects.any()) state_->Apply(&effects);
    return absl::OkStatus();
  }

  bool Progress() override {
    for (;;) {
      const std::uint64_t version = state_->runnable_version();
      // All operations that became runnable before have been visited: their
      // chunks are claimed.
      if (version == seen_version_ || !state_->Enter(rank_)) return false;
      GroupState::Effects effects;
      const bool worked = WorkOnAny(&effects);
      state_->Leave(rank_);
      state_->Apply(&effects);
      if (worked) return true;
      seen_version_ = version;
      state_->SetIdle(rank_);
    }
  }

  bool HandsOver() const override { return hands_over_; }

  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    TROUPE_RETURN_IF_ERROR(CheckSend(to, data, size(), hands_over_));
    const Event done = Event::Make();
    const std::uint64_t id = static_cast<std::uint64_t>(rank_) << 48 | sent_++;
    internal::Offer offer{rank_, tag,   data.dtype(), data.numel(), data,
                          id,    after, done,         hands_over_};
    const std::string what = offer.ToString(to);
    if (!state_->Enter(rank_)) return state_->abort_status();
    state_->messages().pending(rank_).Add(internal::Pending(offer, to));
    GroupState::Effects effects;
    auto delivery = state_->messages().mailbox(to).Offer(std::move(offer));
    if (delivery) {
      state_->Deliver(to, *std::move(delivery), &effects);
    } else {
      effects.failure = state_->CheckPeerIsThere(rank_, to);
    }
    state_->Leave(rank_);
    if (!after.ready() || !after.status().ok()) {
      after.OnReady(
          [state = state_, rank = rank_, id, what](const absl::Status& status) {
            state->DeliverLater(rank, id, what, status);
          });
    }
    state_->Apply(&effects);
    return done;
  }

  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    TROUPE_RETURN_IF_ERROR(CheckRecv(from, into, size(), hands_over_));
    const Event done = Event::Make();
    internal::Receive receive{from, tag, into, arrival, done};
    if (!state_->Enter(rank_)) return state_->abort_status();
    state_->messages().pending(rank_).Add(internal::Pending(receive));
    GroupState::Effects effects;
    auto delivery = state_->messages().mailbox(rank_).Post(std::move(receive));
    if (delivery) {
      state_->Deliver(rank_, *std::move(delivery), &effects);
    } else {
      effects.failure = state_->CheckPeerIsThere(rank_, from);
    }
    state_->Leave(rank_);
    state_->Apply(&effects);
    return done;
  }

  void SetWakeup(std::function<void()> wakeup) override {
    state_->SetWakeup(rank_, std::move(wakeup));
  }

  std::vector<Waiting> Waits() const override { return state_->Waits(rank_); }

  void Abort(absl::Status status) override { state_->Abort(std::move(status)); }

 private:
  // Enters the group unless the collective is invalid or the group aborted.
  absl::Status Admit(const Collective& collective) {
    TROUPE_RETURN_IF_ERROR(CheckCollective(collective, rank_, size()));
    const auto too_long = [](const nn::Tensor& side) {
      return side.defined() && side.numel() >= internal::kCountMax;
    };
    if (too_long(collective.range) || too_long(collective.input)) {
      return absl::InvalidArgumentError(absl::StrCat(
          collective.ToString(), ": a range must be smaller than 2^40"));
    }
    if (!state_->Enter(rank_)) return state_->abort_status();
    AdvanceHead();
    if (next_ - head_ < state_->in_flight_max()) return absl::OkStatus();
    state_->Leave(rank_);
    return absl::ResourceExhaustedError(absl::StrCat(
        "rank ", rank_, " has ", next_ - head_,
        " collectives in flight, as many as in_flight_max allows; the oldest "
        "is number ",
        head_, "; wait for it"));
  }

  void AdvanceHead() {
    while (head_ < next_ && state_->finished(head_)) ++head_;
  }

  // Processes a chunk of the oldest operation that has one.
  bool WorkOnAny(GroupState::Effects* effects) {
    AdvanceHead();
    for (std::uint64_t seq = head_; seq < next_; ++seq) {
      if (state_->runnable(seq) && state_->WorkOn(rank_, seq, effects)) {
        return true;
      }
    }
    return false;
  }

  // Returns false, having left, once the group is aborted.
  bool ApplyOutside(GroupState::Effects* effects) {
    state_->Leave(rank_);
    state_->Apply(effects);
    return state_->Enter(rank_);
  }

  // Returns the status of an operation of an aborted group; it may have
  // finished before.
  absl::Status Outcome(std::uint64_t seq) const {
    return state_->finished(seq) ? absl::OkStatus() : state_->AwaitAbort();
  }

  absl::Status GiveUp(std::uint64_t seq, absl::Duration timeout) {
    const std::string wait = state_->DescribeWait(rank_, seq);
    state_->Leave(rank_);
    state_->Abort(absl::DeadlineExceededError(
        absl::StrCat("rank ", rank_, " waited ", absl::FormatDuration(timeout),
                     " for ", wait)));
    return state_->AwaitAbort();
  }

  const std::shared_ptr<GroupState> state_;
  const int rank_;
  const bool hands_over_;
  // Collectives that this rank joined; those before head_ are finished.
  std::uint64_t next_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t seen_version_ = 0;
  std::uint64_t sent_ = 0;  // messages
  int spins_ = Waiter::kSpinsMax;
};

}  // namespace

Group MakeLocalGroup(const LocalGroupOptions& options) {
  TROUPE_CHECK(options.size >= 1 && options.size <= kLocalGroupSizeMax,
               "a local group has 1 to 256 ranks");
  TROUPE_CHECK(options.chunk_bytes >= 1, "a chunk has a byte");
  TROUPE_CHECK(options.in_flight_max >= 1 &&
                   options.in_flight_max <= kLocalGroupInFlightMax &&
                   (options.in_flight_max & (options.in_flight_max - 1)) == 0,
               "in_flight_max is a power of two up to 65536");
  auto state = std::make_shared<GroupState>(options);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < options.size; ++r) {
    ranks.push_back(
        std::make_unique<LocalCommunicator>(state, r, options.hands_over));
  }
  return ranks;
}

}  // namespace troupe::comm
