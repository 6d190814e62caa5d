// The headers of CAF that actors include, and how actors are spawned and
// messages inspected. Written for CAF 0.17; docs/caf.md lists what changes with
// 0.18 and later.
//
//   auto loader = SpawnStrand(system, LoaderBehavior, context, supervisor);
//
// A *strand* is an actor with a thread of its own, in which kernels,
// collectives and blocking calls may run. Under the seeded scheduler
// (actors/sim) all actors share one thread, and a strand is an ordinary actor.

#ifndef ACTORS_CAF_CAF_H_
#define ACTORS_CAF_CAF_H_

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <tuple>
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
#include "caf/meta/type_name.hpp"
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

// Whether the system runs under the seeded scheduler.
inline bool IsSimulated(caf::actor_system& system) {
  return !system.scheduler().detaches_utility_actors();
}

// Spawns a strand; an ordinary actor under the seeded scheduler.
template <typename F, typename... Args>
auto SpawnStrand(caf::actor_system& system, F behavior, Args&&... args) {
  caf::actor_config config(StrandHostOf(system));
  return system.spawn_functor(std::true_type(), config, behavior,
                              std::forward<Args>(args)...);
}

// Lets CAF serialise, deserialise and print each message type that lists its
// fields once:
//
//     struct Grant {
//       std::int32_t generation = 0;
//       std::int64_t until = 0;
//       static constexpr char kName[] = "troupe.grant";
//       auto fields() { return std::tie(generation, until); }
//     };
//
// The fields travel in the order of fields(). The type must be in this
// namespace: CAF finds inspect() by argument-dependent lookup.
template <class Inspector, class T, class = decltype(T::kName),
          class = decltype(std::declval<T&>().fields())>
typename Inspector::result_type inspect(Inspector& f, T& message) {
  return std::apply(
      [&f](auto&... fields) {
        return f(caf::meta::type_name(T::kName), fields...);
      },
      message.fields());
}

}  // namespace troupe::actors

#endif  // ACTORS_CAF_CAF_H_
