#include "comm/spanning/spanning_group.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/local/waiter.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

class SpanningCommunicator final : public Communicator {
 public:
  SpanningCommunicator(std::shared_ptr<SpanningState> state, int rank)
      : state_(std::move(state)),
        rank_(rank),
        place_(state_->layout().place_of(rank)) {}
  ~SpanningCommunicator() override { state_->Depart(place_); }

  int rank() const override { return rank_; }
  int size() const override { return state_->layout().size(); }

  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    TROUPE_RETURN_IF_ERROR(Check(collective));
    const Event event = Event::Make();
    TROUPE_ASSIGN_OR_RETURN(OpPtr op, state_->Join(place_, collective, event));
    state_->SetSince(place_, op);
    if (after.ready()) {
      state_->Arm(place_, op, after.status());
    } else {
      after.OnReady([state = state_, place = place_,
                     op = std::move(op)](const absl::Status& status) {
        state->Arm(place, op, status);
      });
    }
    return event;
  }

  absl::Status RunInline(const Collective& collective,
                         absl::Duration timeout) override {
    TROUPE_RETURN_IF_ERROR(Check(collective));
    const Switchboard::Driver driver(state_->board());
    TROUPE_ASSIGN_OR_RETURN(OpPtr op,
                            state_->Join(place_, collective, Event()));
    state_->Arm(place_, op, absl::OkStatus());
    Waiter waiter(timeout, &spins_);
    while (!op->done.load(std::memory_order_acquire)) {
      if (state_->ended()) break;
      if (state_->board().Progress()) continue;
      const bool in_time = waiter.Wait();
      if (waiter.just_lost_patience()) state_->SetSince(place_, op);
      if (in_time) continue;
      state_->Abort(absl::DeadlineExceededError(absl::StrCat(
          "rank ", rank_, " waited ", absl::FormatDuration(timeout), " for ",
          state_->DescribeWait(place_, *op))));
    }
    if (!op->done) return state_->status();
    state_->Recycle(std::move(op));
    return absl::OkStatus();
  }

  bool Progress() override { return state_->board().Progress(); }

  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    TROUPE_RETURN_IF_ERROR(CheckSend(to, data, size()));
    TROUPE_RETURN_IF_ERROR(state_->status());
    const Event done = Event::Make();
    state_->messages().Send(rank_, to, tag, data, after, done);
    state_->EndMessagesOfGone();
    return done;
  }

  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    TROUPE_RETURN_IF_ERROR(CheckRecv(from, into, size()));
    TROUPE_RETURN_IF_ERROR(state_->status());
    const Event done = Event::Make();
    state_->messages().Receive(rank_, {from, tag, into, arrival, done});
    state_->EndMessagesOfGone();
    return done;
  }

  void SetWakeup(std::function<void()> wakeup) override {
    state_->SetWakeup(place_, std::move(wakeup));
  }

  std::vector<Waiting> Waits() const override { return state_->Waits(place_); }

  void Abort(absl::Status status) override { state_->Abort(status); }

 private:
  absl::Status Check(const Collective& collective) const {
    TROUPE_RETURN_IF_ERROR(CheckCollective(collective, rank_, size()));
    for (const nn::Tensor* tensor : {&collective.range, &collective.input}) {
      if (tensor->defined() && tensor->numel() >= kCountMax) {
        return absl::InvalidArgumentError(absl::StrCat(
            collective.ToString(), ": a range must be smaller than 2^40"));
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<SpanningState> state_;
  const int rank_;
  const int place_;
  int spins_ = Waiter::kSpinsMax;  // for RunInline(), one call at a time
};

}  // namespace

std::unique_ptr<Communicator> MakeSpanningRank(
    std::shared_ptr<SpanningState> state, int rank) {
  return std::make_unique<SpanningCommunicator>(std::move(state), rank);
}

}  // namespace troupe::comm::internal
