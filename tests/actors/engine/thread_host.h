// Runs a step engine on a plain thread, without actors: the thread that waits
// drives collectives, and receives the tensors of other stages.
//
//   ThreadRanks ranks(fixture);                 // a runner for each rank
//   ranks.Run(/*steps=*/2);                     // each in its own thread
//   ValuesOf(ranks.runner(1).arena());

#ifndef TESTS_ACTORS_ENGINE_THREAD_HOST_H_
#define TESTS_ACTORS_ENGINE_THREAD_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/step_runner.h"
#include "comm/communicator.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/actors/engine/test_groups.h"

namespace troupe::actors {

// The waits of a thread that has no other work.
class ThreadWait : public StrandWait {
 public:
  void AwaitNews() override {}
  void TakeNews(bool) override {}
  absl::Status RunInline(comm::Communicator& comm,
                         const comm::Collective& collective) override;
};

// The collectives that a rank has launched and that have not ended.
class ThreadCollectives {
 public:
  explicit ThreadCollectives(const RankGroups* groups) : groups_(groups) {}

  void Start(std::int64_t step, int action, pipeline::GroupId group,
             const comm::Collective& collective, const comm::Event& after);
  // Calls end(step, action) for each that has ended; returns whether there were
  // any.
  bool End(const std::function<absl::Status(std::int64_t, int)>& end);
  // Drives the groups; returns whether one progressed.
  bool Progress();

 private:
  struct Launched {
    std::int64_t step;
    int action;
    comm::Event done;
  };

  const RankGroups* const groups_;
  std::vector<Launched> in_flight_;
};

// The host of one rank's runner.
class ThreadHost : public StepRunner::Host, public ThreadWait {
 public:
  explicit ThreadHost(const RankGroups* groups) : collectives_(groups) {}

  // `stages`: the host of each stage of this rank's replica.
  void Wire(StepRunner* runner, std::vector<ThreadHost*> stages) {
    runner_ = runner;
    stages_ = std::move(stages);
  }

  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override;
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors, const base::Event& ready) override;
  void AwaitNews() override;
  void TakeNews(bool expected) override;

 private:
  void Post(const Transfer& transfer);
  // Passes finished collectives and received transfers to the runner; returns
  // whether there were any.
  bool Deliver();

  ThreadCollectives collectives_;
  StepRunner* runner_ = nullptr;
  std::vector<ThreadHost*> stages_;
  absl::Mutex mutex_;
  std::vector<Transfer> mail_ ABSL_GUARDED_BY(mutex_);
};

// The engines of all ranks of a job.
class ThreadRanks {
 public:
  explicit ThreadRanks(const EngineFixture& fixture);

  // Runs training steps [0, steps), each rank in its own thread.
  void Run(std::int64_t steps);
  StepRunner& runner(int rank) { return *runners_[rank]; }

 private:
  const EngineFixture& fixture_;
  std::vector<RankGroups> groups_;  // one for each rank
  std::vector<std::unique_ptr<ThreadHost>> hosts_;
  std::vector<std::unique_ptr<StepRunner>> runners_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_THREAD_HOST_H_
