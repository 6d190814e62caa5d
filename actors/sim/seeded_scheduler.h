// The scheduler of a simulation: runs the actors of a system in one thread,
// message by message, in an order that a seed chooses, under a clock that
// stands still as long as any actor can run.
//
//   SimulatedConfig config;
//   caf::actor_system system(config);
//   SeededScheduler scheduler(system, {/*seed=*/42});
//   SpawnActors(system);
//   while (!ended() && scheduler.Step()) {
//   }
//
// Each handler runs on a fiber. When it has woken another actor by a send, and
// at every Preempt(), the seed may suspend it and let others run: messages of
// other actors arrive between two of one handler, and long computations and
// writes run beside the rest of the system.
//
// The seed also draws an eagerness for each actor: a lazy one is passed over
// for long stretches, so that ranks drift apart.
//
// Threads: one. Lifetime: it is destroyed before the system.

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
  // A job, other than an actor, that the scheduler runs in its order. Its owner
  // keeps it, and gives it a number that no actor has.
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
    // Limit on the virtual time that each message takes.
    absl::Duration message_time_max = absl::ZeroDuration();
  };

  SeededScheduler(caf::actor_system& system, const Options& options);
  ~SeededScheduler();

  // Runs one actor: its next message, or a suspended handler further. If no
  // actor can run, moves time to the next timer. Returns false if there is no
  // timer either.
  bool Step();
  // Returns whether no actor has a message or a suspended handler.
  bool idle() const { return coordinator_.jobs.empty() && standing_.empty(); }

  // Suspends the present handler, if the seed chooses to, so that others run.
  // Does nothing outside handlers.
  void Preempt();
  // Suspends the present handler in any case.
  void Stand();

  // Sets the filter of actors: those for which it returns false do not run.
  // Null: all may.
  void RunOnly(std::function<bool(std::uint64_t actor)> may_run) {
    may_run_ = std::move(may_run);
  }
  // Lets `task` run once more.
  void Enqueue(Task& task) { coordinator_.jobs.push_back(&task); }
  // Returns the virtual time, which timers use, too.
  caf::actor_clock::time_point now() const {
    return coordinator_.clock().now();
  }

  // Random numbers of the seed, for choices other than the order.
  nn::RandomStream& draws() { return draws_; }
  // Returns a hash over the order of (actor, message), and over all Mix().
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
