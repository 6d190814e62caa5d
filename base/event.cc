#include "base/event.h"

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"

namespace troupe::base {

struct Event::State {
  using Known = std::function<void()>;

  // Set once, after `status`, which never changes after that.
  std::atomic<bool> ready{false};
  absl::Status status;
  absl::Mutex mutex;
  absl::InlinedVector<Callback, 1> callbacks ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const EventOrigin> origin ABSL_GUARDED_BY(mutex);
  absl::InlinedVector<Known, 1> known ABSL_GUARDED_BY(mutex);
};

Event Event::Make() { return Event(std::make_shared<State>()); }

bool Event::ready() const {
  return state_ == nullptr || state_->ready.load(std::memory_order_acquire);
}

absl::Status Event::status() const {
  if (state_ == nullptr || !ready()) return absl::OkStatus();
  return state_->status;
}

void Event::OnReady(Callback callback) const {
  if (!ready()) {
    absl::MutexLock lock(&state_->mutex);
    if (!ready()) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback(status());
}

void Event::Complete(const absl::Status& status) const {
  if (state_ == nullptr) return;
  // A callback may drop the last other handle on this event.
  const std::shared_ptr<State> state = state_;
  absl::InlinedVector<Callback, 1> callbacks;
  absl::InlinedVector<State::Known, 1> known;
  {
    absl::MutexLock lock(&state->mutex);
    if (state->ready.load(std::memory_order_relaxed)) return;
    state->status = status;
    state->ready.store(true, std::memory_order_release);
    callbacks.swap(state->callbacks);
    known.swap(state->known);
  }
  for (const Callback& callback : callbacks) callback(state->status);
  for (const State::Known& callback : known) callback();
}

std::shared_ptr<const EventOrigin> Event::origin() const {
  if (state_ == nullptr) return nullptr;
  absl::MutexLock lock(&state_->mutex);
  return state_->origin;
}

void Event::SetOrigin(std::shared_ptr<const EventOrigin> origin) const {
  if (state_ == nullptr || origin == nullptr) return;
  const std::shared_ptr<State> state = state_;
  absl::InlinedVector<State::Known, 1> known;
  {
    absl::MutexLock lock(&state->mutex);
    if (state->origin != nullptr) return;
    state->origin = std::move(origin);
    known.swap(state->known);
  }
  for (const State::Known& callback : known) callback();
}

void Event::OnKnown(std::function<void()> callback) const {
  if (!ready()) {
    absl::MutexLock lock(&state_->mutex);
    if (!ready() && state_->origin == nullptr) {
      state_->known.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void Event::Follow(const Event& other) const {
  other.OnKnown([mine = *this, weak = std::weak_ptr<State>(other.state_)] {
    if (const std::shared_ptr<State> state = weak.lock()) {
      mine.SetOrigin(Event(state).origin());
    }
  });
  other.OnReady(
      [mine = *this](const absl::Status& status) { mine.Complete(status); });
}

}  // namespace troupe::base
