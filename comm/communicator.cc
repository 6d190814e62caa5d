#include "comm/communicator.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::comm {
namespace {

// Number of idle calls of Progress() before the thread yields its core, and
// between two readings of the clock.
constexpr int kLooksBeforeYield = 64;
constexpr int kLooksPerClock = 64;

// Await() for an event; errors describe it by `what()`.
template <typename What>
absl::Status AwaitNamed(Communicator& comm, const Event& event,
                        absl::Duration timeout, const What& what) {
  const absl::Time deadline = absl::Now() + timeout;
  for (std::int64_t looks = 0; !event.ready(); ++looks) {
    if (comm.Progress()) continue;
    if (looks >= kLooksBeforeYield) sched_yield();
    if (looks % kLooksPerClock != 0 || absl::Now() <= deadline) continue;
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("rank ", comm.rank(), " waited ",
                     absl::FormatDuration(timeout), " for ", what()));
    comm.Abort(late);
    // An event of the group is ready after the abort; any other may never be.
    return event.ready() ? event.status() : late;
  }
  return event.status();
}

// Completes one event once several others have completed.
class Joint {
 public:
  explicit Joint(std::size_t count) : left_(count) {}

  const Event& event() const { return event_; }
  void One(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      status_.Update(status);
      if (--left_ > 0) return;
    }
    event_.Complete(status_);
  }

 private:
  const Event event_ = Event::Make();
  absl::Mutex mutex_;
  std::size_t left_;
  absl::Status status_;
};

}  // namespace

absl::Status Communicator::RunInline(const Collective& collective,
                                     absl::Duration timeout) {
  absl::StatusOr<Event> event = Start(collective, Event());
  if (!event.ok()) return event.status();
  return AwaitNamed(*this, *event, timeout,
                    [&] { return collective.ToString(); });
}

absl::Status Await(Communicator& comm, const Event& event,
                   absl::Duration timeout) {
  return AwaitNamed(comm, event, timeout, [] { return "an event"; });
}

absl::StatusOr<Event> Communicator::StartTogether(
    absl::Span<const Collective> collectives, const Event& after) {
  for (const Collective& collective : collectives) {
    TROUPE_RETURN_IF_ERROR(CheckCollective(collective, rank(), size()));
  }
  if (collectives.empty()) return after;
  const auto joint = std::make_shared<Joint>(collectives.size());
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const absl::StatusOr<Event> event = Start(collectives[i], after);
    if (!event.ok()) {
      if (i == 0) return event.status();
      const absl::Status status = base::WithMessage(
          event.status(),
          absl::StrCat(
              "rank ", rank(), " started ", i, " of ", collectives.size(),
              " coalesced collectives, then: ", event.status().message()));
      Abort(status);
      return status;
    }
    event->OnReady([joint](const absl::Status& status) { joint->One(status); });
  }
  return joint->event();
}

absl::StatusOr<Event> StartCoalesced(Communicator& comm,
                                     absl::Span<const Collective> collectives,
                                     const Event& after) {
  return comm.StartTogether(collectives, after);
}

}  // namespace troupe::comm
