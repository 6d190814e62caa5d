// absl::Duration as the time-outs of actors have it.
//
//   self->delayed_send(self, ActorTimeout(spec.timeout), watch_atom::value);

#ifndef ACTORS_CAF_ACTOR_TIMEOUT_H_
#define ACTORS_CAF_ACTOR_TIMEOUT_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace troupe::actors {

// At most ten years, absl::InfiniteDuration() included: a time that can still
// be added to a clock's.
inline std::chrono::nanoseconds ActorTimeout(absl::Duration duration) {
  const absl::Duration longest = absl::Hours(24 * 3650);
  return std::chrono::nanoseconds(
      absl::ToInt64Nanoseconds(std::min(duration, longest)));
}

}  // namespace troupe::actors

#endif  // ACTORS_CAF_ACTOR_TIMEOUT_H_
