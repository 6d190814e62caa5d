// CAF's scheduler as a job has it: a strand has a thread of its own, all other
// actors share one, and a third dispatches what is delayed. The threads are
// there before the first actor is (thread_supply.h). CAF's own schedulers start
// threads as they go, and where one is refused, the actor system neither works
// nor ends: its destructor waits for an actor that never ran.
//
//   const int count = JobThreads(/*ranks=*/2);
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
//                           StartActorThreads(count));
//   caf::actor_system_config config;
//   RunOnThreads(*threads, config);                // they outlive the system
//   caf::actor_system system(config);
//   auto loader = SpawnStrand(system, LoaderBehavior, context, supervisor);
//
// Each system takes two of the threads, and each strand one, which it keeps
// until the actor or the system ends. The system's destructor joins them all.

#ifndef ACTORS_CAF_STRAND_SCHEDULER_H_
#define ACTORS_CAF_STRAND_SCHEDULER_H_

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/caf/thread_supply.h"
#include "caf/actor_system.hpp"
#include "caf/actor_system_config.hpp"
#include "caf/detail/thread_safe_actor_clock.hpp"
#include "caf/execution_unit.hpp"
#include "caf/resumable.hpp"
#include "caf/scheduler/abstract_coordinator.hpp"

namespace troupe::actors {

class StrandScheduler : public caf::scheduler::abstract_coordinator {
 public:
  StrandScheduler(caf::actor_system& system, ThreadSupply& threads);
  // Where another module of the system cannot start, and throws, CAF takes the
  // system down without stop(), while its threads run: they, or CAF, would use
  // what is gone, or wait for ever. So that is the end of the program.
  ~StrandScheduler() override {
    if (running_) std::terminate();
  }

  // The host of a spawn that makes a strand.
  caf::execution_unit* strand_host() { return &strand_host_; }

  // `job` has messages.
  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return clock_; }

 protected:
  void start() override;
  void stop() override;

 private:
  // One thread and the actors that wait for it.
  class Lane : public caf::execution_unit {
   public:
    explicit Lane(StrandScheduler& scheduler)
        : execution_unit(&scheduler.system()), scheduler_(scheduler) {}

    void Push(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);
    // Runs actors until Close() was called and no more wait; a strand's lane
    // ends with its actor.
    void Run() ABSL_LOCKS_EXCLUDED(mutex_);
    void RunStrand() ABSL_LOCKS_EXCLUDED(mutex_);
    void Close() ABSL_LOCKS_EXCLUDED(mutex_);
    // Drops what came after the end.
    void CleanUp() ABSL_LOCKS_EXCLUDED(mutex_);
    // What an actor of this lane has woken.
    void exec_later(caf::resumable* job) override { scheduler_.enqueue(job); }

   private:
    // Null: closed, and nothing is left.
    caf::resumable* Pop() ABSL_LOCKS_EXCLUDED(mutex_);
    // Whether the actor has ended.
    bool Resume(caf::resumable* job, std::size_t messages_max);

    StrandScheduler& scheduler_;
    absl::Mutex mutex_;
    absl::CondVar changed_;
    std::deque<caf::resumable*> jobs_ ABSL_GUARDED_BY(mutex_);
    bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  };

  // Gives a thread to the actor that is spawned on it.
  class StrandHost : public caf::execution_unit {
   public:
    explicit StrandHost(StrandScheduler& scheduler)
        : execution_unit(&scheduler.system()), scheduler_(scheduler) {}
    void exec_later(caf::resumable* job) override {
      scheduler_.StartStrand(job);
    }

   private:
    StrandScheduler& scheduler_;
  };

  void StartStrand(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);
  // The actor has ended; another one may come to lie where it lies.
  void Forget(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Lane*> Strands() ABSL_LOCKS_EXCLUDED(mutex_);
  Lane& LaneOf(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);

  ThreadSupply& threads_;
  bool running_ = false;  // between start() and stop()
  StrandHost strand_host_;
  caf::detail::thread_safe_actor_clock clock_;
  Lane shared_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<caf::resumable*, Lane*> lane_of_ ABSL_GUARDED_BY(mutex_);
};

// Starts the threads for an actor system. What CAF keeps in each thread that
// runs actors has its memory then: without it, CAF's first use would end the
// process.
//   kResourceExhausted: a thread was refused, or its memory.
absl::StatusOr<std::unique_ptr<ThreadSupply>> StartActorThreads(int count);

// Gives the actor system of `config` this scheduler.
void RunOnThreads(ThreadSupply& threads, caf::actor_system_config& config);

// Where a strand of `system` is spawned; null under the simulator's scheduler,
// where strands are as other actors are.
caf::execution_unit* StrandHostOf(caf::actor_system& system);

}  // namespace troupe::actors

#endif  // ACTORS_CAF_STRAND_SCHEDULER_H_
