#include "actors/sim/simulated_channel.h"

#include <algorithm>

namespace troupe::actors {

void SimulatedChannel::Push(Item item, absl::Duration delay) {
  if (closed_) return;
  const auto now = scheduler_.now();
  UnderWay last = {now + absl::ToChronoNanoseconds(delay), std::move(item)};
  if (!items_.empty()) last.due = std::max(last.due, items_.back().due);
  if (last.due > now) ends_.wake_in(absl::FromChrono(last.due - now));
  items_.push_back(std::move(last));
  Wake();
}

void SimulatedChannel::Heal() {
  --cuts_;
  Wake();
}

void SimulatedChannel::Close(caf::error reason, bool drop) {
  if (drop) items_.clear();
  Item end;
  end.reason = std::move(reason);
  Push(std::move(end), absl::ZeroDuration());
  closed_ = true;
}

void SimulatedChannel::Drop() {
  items_.clear();
  closed_ = true;
}

void SimulatedChannel::Wake() {
  if (queued_ || !IsReady()) return;
  queued_ = true;
  scheduler_.Enqueue(*this);
}

caf::resumable::resume_result SimulatedChannel::resume(caf::execution_unit*,
                                                       std::size_t) {
  queued_ = false;
  if (IsReady()) {
    Item item = std::move(items_.front().item);
    items_.pop_front();
    ends_.deliver(std::move(item));
  }
  Wake();
  return awaiting_message;
}

bool SimulatedChannel::IsReady() const {
  return cuts_ == 0 && !items_.empty() && ends_.may_deliver() &&
         items_.front().due <= scheduler_.now();
}

}  // namespace troupe::actors
