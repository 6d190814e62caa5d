// The one thread of a simulation: runs the actors of a system message by
// message, in an order that a seed chooses, under a clock that stands still
// while anybody can run.
//
//   SimulatedConfig config;
//   caf::actor_system system(config);
//   SeededScheduler scheduler(system, {/*seed=*/42});
//   SpawnActors(system);
//   while (!ended() && scheduler.Step()) {
//   }
//
// Each handler runs on a fiber. Where it has woken another actor by a send, and
// at every Preempt(), the seed may leave it standing there and let others run:
// two messages of one handler arrive with others between them, and what
// computes or writes for long does so beside the rest of the system.
//
// Actors differ in how eager they are, drawn once for each: a lazy one is
// passed over for long stretches, so that ranks drift apart.
//
// Threads: one. Lifetime: it is gone before the system.

#ifndef ACTORS_SIM_SEEDED_SCHEDULER_H_
#define ACTORS_SIM_SEEDED_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/fnv_hash.h"
#include "caf/actor_clock.hpp"
#include "caf/actor_system.hpp"
#include "caf/actor_system_config.hpp"
#include "caf/resumable.hpp"
#include "caf/scheduler/test_coordinator.hpp"
#include "nn/random/philox.h"

namespace troupe::actors {

// The configuration of an actor system that has no thread of its own.
struct SimulatedConfig : caf::actor_system_config {
  SimulatedConfig();
};

class SeededScheduler {
 public:
  // Something else than an actor that the seed may let go on. Its owner keeps
  // it, and has a number for it that no actor has.
  class Task : public caf::resumable {
   public:
    explicit Task(std::uint64_t id) : id_(id) {}
    std::uint64_t id() const { return id_; }
    void intrusive_ptr_add_ref_impl() override {}
    void intrusive_ptr_release_impl() override {}

   private:
    const std::uint64_t id_;
  };

  struct Options {
    std::uint64_t seed = 0;
    // A message takes a time below this, on the virtual clock.
    absl::Duration message_time_max = absl::ZeroDuration();
  };

  SeededScheduler(caf::actor_system& system, const Options& options);
  ~SeededScheduler();

  // Lets one actor go on: with its next message, or with the handler that it
  // was left standing in. Moves time to the next timer where there is none.
  // False: nothing is left that could ever happen.
  bool Step();
  // Whether no actor has a message or stands in a handler.
  bool idle() const { return coordinator_.jobs.empty() && standing_.empty(); }

  // In a handler: others may run here. Elsewhere it does nothing.
  void Preempt();
  // The same, but they do.
  void Stand();

  // Actors of which this is false wait, messages or not. Null: none does.
  void RunOnly(std::function<bool(std::uint64_t actor)> may_run) {
    may_run_ = std::move(may_run);
  }
  // Once for each time that it is to go on.
  void Enqueue(Task& task) { coordinator_.jobs.push_back(&task); }
  // Virtual; of timers too.
  caf::actor_clock::time_point now() const {
    return coordinator_.clock().now();
  }

  // For what the seed chooses beside the order.
  nn::RandomStream& draws() { return draws_; }
  // Over the order in which actors ran which messages, and what was mixed in.
  std::uint64_t hash() const { return hash_.value(); }
  void Mix(std::uint64_t value) { hash_.Add(value); }

 private:
  class Hand;

  std::size_t Pick();
  bool AnyMayRun() const;
  std::uint32_t WeightOf(const caf::resumable* job);
  void PassTime();
  void MixNext(caf::resumable* job);
  std::uint32_t EagernessOf(const caf::resumable* job);
  std::unique_ptr<Hand> FreeHand();
  void Run(std::unique_ptr<Hand> hand);

  caf::actor_system& system_;
  caf::scheduler::test_coordinator& coordinator_;
  const Options options_;
  const nn::RandomKey key_;
  nn::RandomStream draws_;
  base::FnvHash hash_;
  std::function<bool(std::uint64_t actor)> may_run_;
  std::vector<std::uint32_t> weights_, eagerness_;
  Hand* running_ = nullptr;
  std::vector<std::unique_ptr<Hand>> standing_, free_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SEEDED_SCHEDULER_H_
