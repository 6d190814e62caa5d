// Converts absl::Duration to the time-out type of CAF's actors.
//
//   self->delayed_send(self, ActorTimeout(spec.timeout), watch_atom::value);

#ifndef ACTORS_CAF_ACTOR_TIMEOUT_H_
#define ACTORS_CAF_ACTOR_TIMEOUT_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace troupe::actors {

// Returns at most ten years, also for absl::InfiniteDuration(), so that adding
// the result to a clock's time does not overflow.
inline std::chrono::nanoseconds ActorTimeout(absl::Duration duration) {
  const absl::Duration longest = absl::Hours(24 * 3650);
  return std::chrono::nanoseconds(
      absl::ToInt64Nanoseconds(std::min(duration, longest)));
}

}  // namespace troupe::actors

#endif  // ACTORS_CAF_ACTOR_TIMEOUT_H_
