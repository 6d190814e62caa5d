// A watchdog timer: detects that something has given no sign of life for
// JobSpec::timeout. The supervisor has one for the ranks, and one for the
// checkpoint in progress. Plain data, without a clock of its own: the owner
// checks at the deadline.
//
//   Watchdog watchdog(/*timeout=*/absl::Minutes(5));
//   watchdog.Kick(now);                        // at each sign of life
//   CheckAt(watchdog.deadline());
//   if (watchdog.IsExpired(now)) {
//     return watchdog.Error("rank 0 has done 40 of 64 granted steps");
//   }
//
// An infinite time-out counts as ten years (ActorTimeout()).
//
// Threads: one at a time. All times are from the caller's clock.

#ifndef ACTORS_SUPERVISION_WATCHDOG_H_
#define ACTORS_SUPERVISION_WATCHDOG_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "actors/caf/actor_timeout.h"

namespace troupe::actors {

class Watchdog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Watchdog(absl::Duration timeout = absl::InfiniteDuration())
      : timeout_(timeout) {}

  // Notes a sign of life.
  void Kick(TimePoint now) { last_ = now; }
  // Returns the time at which the watchdog expires without another sign.
  TimePoint deadline() const { return last_ + ActorTimeout(timeout_); }
  // Whether the last sign of life is older than the time-out. Kick() must have
  // been called.
  bool IsExpired(TimePoint now) const { return now >= deadline(); }
  // Returns kDeadlineExceeded: "no progress for 5m (`where`)". `where` says
  // where the work stands.
  absl::Status Error(absl::string_view where) const {
    return absl::DeadlineExceededError(absl::StrCat(
        "no progress for ", absl::FormatDuration(timeout_), " (", where, ")"));
  }

 private:
  absl::Duration timeout_;
  TimePoint last_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_WATCHDOG_H_
