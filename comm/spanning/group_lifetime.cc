#include "comm/spanning/group_lifetime.h"

#include <sched.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace troupe::comm::internal {

std::shared_ptr<GroupLifetime> GroupLifetime::Make(
    std::shared_ptr<Switchboard> board, std::shared_ptr<Courier> courier,
    std::uint32_t number, FabricGroupOptions options) {
  const std::shared_ptr<GroupLifetime> life(new GroupLifetime(
      std::move(board), std::move(courier), number, std::move(options)));
  life->messages_.SetOwner(
      std::shared_ptr<SpanningMessages>(life, &life->messages_),
      [weak = std::weak_ptr<GroupLifetime>(life)](const absl::Status& why) {
        if (const auto life = weak.lock()) life->BeginAbort(why);
      });
  return life;
}

GroupLifetime::GroupLifetime(std::shared_ptr<Switchboard> board,
                             std::shared_ptr<Courier> courier,
                             std::uint32_t number, FabricGroupOptions options)
    : context_(std::move(board), number, std::move(options)),
      wakeups_(new Wakeup[context_.ranks_here().size()]),
      messages_(&context_.board(), std::move(courier), number,
                &context_.layout()),
      ops_(&context_.layout(), context_.options().in_flight_max),
      memory_(context_.layout().members(), context_.self()),
      departures_(&context_.layout()),
      waits_(&context_, &ops_, &messages_) {}

void GroupLifetime::Finish(const OpPtr& op) {
  ops_.Erase(op->seq);
  if (op->calls.has_events()) {
    std::vector<Event> events;
    for (int place = 0; place < op->calls.size(); ++place) {
      events.push_back(op->calls[place].event);
    }
    context_.board().Post([events = std::move(events)] {
      for (const Event& event : events) event.Complete(absl::OkStatus());
    });
  }
  op->done.store(true, std::memory_order_release);
}

absl::Status GroupLifetime::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void GroupLifetime::BeginAbort(const absl::Status& why) {
  const absl::Status status =
      why.ok() ? absl::CancelledError("the group was aborted") : why;
  bool tell = true;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    waits_.Record();
    status_ = status;
    EndIfReleased();
    // If all ranks here have departed in order, the peers may still finish
    // well.
    tell = !departures_.HasDeparted(context_.self());
  }
  // The events' callbacks may drive the fabric: not here, perhaps within a
  // link.
  context_.board().Post(
      [self = shared_from_this(), status] { self->messages_.Close(status); });
  if (tell) {
    Frame frame = context_.FrameOf(FrameType::kAbort, 0);
    frame.words[0] = static_cast<std::uint64_t>(status.code());
    context_.SendToAll(frame, status.message().substr(0, kAbortTextMax));
  }
  LetGoAllIfDue();
}

void GroupLifetime::EndIfReleased() {
  if (status_.ok() || !memory_.free() || ending_) return;
  ending_ = true;
  std::vector<Event> events;
  for (const auto& [seq, op] : ops_.all()) {
    for (int place = 0; place < op->calls.size(); ++place) {
      if (op->calls[place].joined) events.push_back(op->calls[place].event);
    }
  }
  // Buffers, and the ranks' inputs, are no longer needed.
  context_.board().Post([self = shared_from_this(), ops = ops_.TakeAll(),
                         events = std::move(events), status = status_] {
    for (const Event& event : events) event.Complete(status);
    self->ended_.store(true, std::memory_order_release);
    self->Wake();
  });
  sends_.Clear();
}

void GroupLifetime::LetGoAllIfDue() {
  {
    absl::MutexLock lock(&mutex_);
    if (status_.ok() || !memory_.TakeLetGoAll()) return;
  }
  context_.SendToAll(context_.FrameOf(FrameType::kLetGoAll, 0), "");
}

void GroupLifetime::Abort(const absl::Status& why) {
  BeginAbort(why);
  Switchboard& board = context_.board();
  const absl::Time patience = absl::Now() + board.options().abort_grace;
  while (!ended() || !messages_.LetGo()) {
    if (board.Progress()) continue;
    if (absl::Now() >= patience) CloseHolders();
    sched_yield();
  }
  // Tasks must still report the messages that have ended.
  while (board.has_tasks()) board.Progress();
}

void GroupLifetime::CloseHolders() {
  const absl::Status why = absl::CancelledError(absl::StrCat(
      "group ", context_.name(), " was aborted, and the link did not let go"));
  std::vector<int> holders = messages_.Holders();
  {
    absl::MutexLock lock(&mutex_);
    for (int m : memory_.Holders()) {
      holders.push_back(context_.layout().process_of(m));
    }
  }
  for (int process : holders) context_.board().Close(process, why);
}

void GroupLifetime::Send(const Outbox& out) {
  if (!out.failure.ok()) BeginAbort(out.failure);
  for (const Outbox::Outgoing& send : out.sends) {
    context_.Send(send.member, send.frame, send.payload, send.done);
  }
}

void GroupLifetime::SetWakeup(int place, std::function<void()> wakeup) {
  wakeups_[place].Set(std::move(wakeup));
}

void GroupLifetime::Wake() {
  const std::size_t places = context_.ranks_here().size();
  for (std::size_t p = 0; p < places; ++p) wakeups_[p].Call();
}

}  // namespace troupe::comm::internal
