// An actor system in one thread, for tests of one actor among fakes: messages
// run when the test says so, and time stands still until it is moved.
//
//   SimulatedSystem system;
//   auto actor = system.get().spawn(...);
//   caf::anon_send(actor, message);
//   system.RunAll();
//   system.Advance(absl::Seconds(61));

#ifndef TESTS_ACTORS_SIMULATED_SYSTEM_H_
#define TESTS_ACTORS_SIMULATED_SYSTEM_H_

#include <chrono>

#include "absl/time/time.h"
#include "actors/protocol/messages.h"
#include "caf/scheduler/test_coordinator.hpp"

namespace troupe::actors {

class SimulatedSystem {
 public:
  SimulatedSystem() : system_(config_) {
    // Times of zero mean "unset" in places; start later.
    coordinator().clock().current_time += std::chrono::hours(1);
  }
  ~SimulatedSystem() { RunAll(); }

  caf::actor_system& get() { return system_; }

  // Until no actor has a message.
  void RunAll() {
    while (!coordinator().jobs.empty()) coordinator().run_once();
  }
  // Timers that are due meanwhile go off.
  void Advance(absl::Duration duration) {
    coordinator().advance_time(absl::ToChronoNanoseconds(duration));
    RunAll();
  }

 private:
  struct Config : caf::actor_system_config {
    Config() {
      AddMessageTypes(*this);
      set("scheduler.policy", caf::atom("testing"));
    }
  };
  caf::scheduler::test_coordinator& coordinator() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  Config config_;
  caf::actor_system system_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIMULATED_SYSTEM_H_
