// The CAF scheduler of a job: each strand has a thread of its own, all other
// actors share one, and one more dispatches delayed messages. All threads are
// started before the first actor (thread_supply.h). CAF's own schedulers start
// threads as they go; if the system refuses one, the actor system neither works
// nor ends, because its destructor waits for an actor that never ran.
//
//   const int count = JobThreads(/*ranks=*/2);
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
//                           StartActorThreads(count));
//   caf::actor_system_config config;
//   RunOnThreads(*threads, config);                // they outlive the system
//   caf::actor_system system(config);
//   auto loader = SpawnStrand(system, LoaderBehavior, context, supervisor);
//
// Each actor system takes two of the threads, and each strand takes one, which
// it keeps until the actor or the system ends. The system's destructor joins
// all threads.

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
  // If another module of the system throws while it starts, CAF destroys the
  // system without calling stop(), while the threads still run. They, or CAF,
  // would use freed memory or wait for ever, so the program is terminated.
  ~StrandScheduler() override {
    if (running_) std::terminate();
  }

  // Execution unit to spawn an actor on for it to become a strand.
  caf::execution_unit* strand_host() { return &strand_host_; }

  // Schedules `job`, an actor that has messages to process.
  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return clock_; }

 protected:
  void start() override;
  void stop() override;

 private:
  // Run queue of one thread: the actors that wait for their turn on it.
  class Lane : public caf::execution_unit {
   public:
    explicit Lane(StrandScheduler& scheduler)
        : execution_unit(&scheduler.system()), scheduler_(scheduler) {}

    void Push(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);
    // Runs actors until Close() was called and the queue is empty.
    void Run() ABSL_LOCKS_EXCLUDED(mutex_);
    // Run() for a strand: returns also when its actor has ended.
    void RunStrand() ABSL_LOCKS_EXCLUDED(mutex_);
    void Close() ABSL_LOCKS_EXCLUDED(mutex_);
    // Releases the actors that were pushed after Run() had returned.
    void CleanUp() ABSL_LOCKS_EXCLUDED(mutex_);
    // Schedules an actor that an actor of this lane has woken.
    void exec_later(caf::resumable* job) override { scheduler_.enqueue(job); }

   private:
    // Waits for an actor; returns null once the lane is closed and empty.
    caf::resumable* Pop() ABSL_LOCKS_EXCLUDED(mutex_);
    // Lets the actor process up to `messages_max` messages. Returns whether it
    // has ended.
    bool Resume(caf::resumable* job, std::size_t messages_max);

    StrandScheduler& scheduler_;
    absl::Mutex mutex_;
    absl::CondVar changed_;
    std::deque<caf::resumable*> jobs_ ABSL_GUARDED_BY(mutex_);
    bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  };

  // Execution unit that gives a thread to each actor spawned on it.
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
  // Removes an actor that has ended: a new one may get the same address.
  void Forget(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Lane*> Strands() ABSL_LOCKS_EXCLUDED(mutex_);
  Lane& LaneOf(caf::resumable* job) ABSL_LOCKS_EXCLUDED(mutex_);

  ThreadSupply& threads_;
  bool running_ = false;  // true between start() and stop()
  StrandHost strand_host_;
  caf::detail::thread_safe_actor_clock clock_;
  Lane shared_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<caf::resumable*, Lane*> lane_of_ ABSL_GUARDED_BY(mutex_);
};

// Starts the threads for an actor system, and in each allocates CAF's
// thread-local state: if that allocation failed later, in CAF's first use of
// the thread, the process would end.
//   kResourceExhausted: the system refused a thread, or its memory.
absl::StatusOr<std::unique_ptr<ThreadSupply>> StartActorThreads(int count);

// Makes actor systems of `config` use this scheduler.
void RunOnThreads(ThreadSupply& threads, caf::actor_system_config& config);

// Returns the execution unit on which strands of `system` are spawned. Null
// under the simulator's scheduler, where strands are ordinary actors.
caf::execution_unit* StrandHostOf(caf::actor_system& system);

}  // namespace troupe::actors

#endif  // ACTORS_CAF_STRAND_SCHEDULER_H_
