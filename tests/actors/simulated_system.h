// An actor system in one thread, for tests of one actor among fakes: the test
// decides when messages run and when the clock advances.
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

  // Runs messages until no actor has one.
  void RunAll() {
    while (!coordinator().jobs.empty()) coordinator().run_once();
  }
  // Advances the clock, and runs the timers that become due, and all messages.
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
