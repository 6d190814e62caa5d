// Detects that this process itself was stopped (SIGSTOP, a suspended virtual
// machine), by beats that come late: then the silence of its peers is not their
// fault, and they may have taken this process for lost.
//
//   OwnPause pause(now);
//   if (pause.IsLate(now, liveness)) liveness.Restart(now);    // at each beat
//   pause.Beat(now);
//   if (const auto own = pause.Recent(now, liveness)) BlameSelf(*own);
//
// Times are from the caller's monotonic clock. Threads: one at a time.

#ifndef ACTORS_CLUSTER_OWN_PAUSE_H_
#define ACTORS_CLUSTER_OWN_PAUSE_H_

#include <optional>

#include "actors/cluster/liveness.h"

namespace troupe::actors {

class OwnPause {
 public:
  using TimePoint = Liveness::TimePoint;
  using Duration = Liveness::Duration;

  explicit OwnPause(TimePoint now) : last_beat_(now) {}

  // Returns whether the present beat is late by more than an interval, so that
  // all peers need a new time-out. Notes a pause of nearly a time-out.
  bool IsLate(TimePoint now, const Liveness& liveness) {
    const Duration late = now - last_beat_;
    if (late + liveness.interval() >= liveness.timeout()) {
      pause_ = Pause{now, late};
    }
    return late > 2 * liveness.interval();
  }
  // Notes the present beat.
  void Beat(TimePoint now) { last_beat_ = now; }

  // Returns the duration of the last pause that IsLate() has noted, if it ended
  // less than a time-out ago.
  std::optional<Duration> Recent(TimePoint now,
                                 const Liveness& liveness) const {
    if (!pause_ || now - pause_->end >= liveness.timeout()) return std::nullopt;
    return pause_->duration;
  }

 private:
  struct Pause {
    TimePoint end;
    Duration duration;
  };

  TimePoint last_beat_;
  std::optional<Pause> pause_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_OWN_PAUSE_H_
