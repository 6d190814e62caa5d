// The actor framework as Troupe uses it. Only this header, status_error.cc,
// strand_scheduler.h and job.cc's configuration know that it is CAF 0.17;
// docs/caf.md says what changes with 0.18 and later.
//
//   auto loader = SpawnStrand(system, LoaderBehavior, context, supervisor);
//
// Execution is a run-time choice: a *strand* is an actor with a thread of its
// own, where kernels, collectives and blocking calls run; under the seeded
// scheduler (actors/sim) it becomes an ordinary job of the one thread.

#ifndef ACTORS_CAF_CAF_H_
#define ACTORS_CAF_CAF_H_

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/caf/strand_scheduler.h"
#include "caf/abstract_actor.hpp"
#include "caf/actor_cast.hpp"
#include "caf/actor_config.hpp"
#include "caf/actor_ostream.hpp"
#include "caf/actor_system.hpp"
#include "caf/actor_system_config.hpp"
#include "caf/event_based_actor.hpp"
#include "caf/exit_reason.hpp"
#include "caf/scheduler/abstract_coordinator.hpp"
#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/type_id.hpp"
#include "caf/typed_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#if CAF_VERSION < 1700 || CAF_VERSION >= 1800
#error "Troupe is written for CAF 0.17; see docs/caf.md"
#endif

namespace troupe::actors {

// True under the seeded scheduler.
inline bool IsSimulated(caf::actor_system& system) {
  return !system.scheduler().detaches_utility_actors();
}

// Spawns an actor with a thread of its own; without one when simulated.
template <typename F, typename... Args>
auto SpawnStrand(caf::actor_system& system, F behavior, Args&&... args) {
  caf::actor_config config(StrandHostOf(system));
  return system.spawn_functor(std::true_type(), config, behavior,
                              std::forward<Args>(args)...);
}

}  // namespace troupe::actors

#endif  // ACTORS_CAF_CAF_H_
