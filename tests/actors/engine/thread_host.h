// A step engine on a plain thread, without actors: collectives are driven, and
// tensors of other stages received, by the thread that waits.
//
//   ThreadRanks ranks(fixture);                 // a runner for each rank
//   ranks.Run(/*steps=*/2);                     // each in a thread of its own
//   ValuesOf(ranks.runner(1).arena());

#ifndef TESTS_ACTORS_ENGINE_THREAD_HOST_H_
#define TESTS_ACTORS_ENGINE_THREAD_HOST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/engine/step_runner.h"
#include "actors/engine/strand_wait.h"
#include "comm/communicator.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/actors/engine/test_groups.h"

namespace troupe::actors {

// Waits as a thread that has nothing else to do.
class ThreadWait : public StrandWait {
 public:
  void AwaitNews() override {}
  void TakeNews(bool) override {}
  absl::Status RunInline(comm::Communicator& comm,
                         const comm::Collective& collective) override;
};

// One rank's.
class ThreadHost : public StepRunner::Host, public ThreadWait {
 public:
  explicit ThreadHost(const RankGroups* groups) : groups_(groups) {}

  // `stages`: who has each stage of this rank's replica.
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
  // Whether there was any.
  bool Deliver();

  const RankGroups* const groups_;
  StepRunner* runner_ = nullptr;
  std::vector<ThreadHost*> stages_;
  struct Launched {
    std::int64_t step;
    int action;
    comm::Event done;
  };
  std::vector<Launched> in_flight_;
  absl::Mutex mutex_;
  std::vector<Transfer> mail_ ABSL_GUARDED_BY(mutex_);
};

// All ranks of a job.
class ThreadRanks {
 public:
  explicit ThreadRanks(const EngineFixture& fixture);

  // Runs training steps [0, steps), each rank in its thread.
  void Run(std::int64_t steps);
  StepRunner& runner(int rank) { return *runners_[rank]; }

 private:
  const EngineFixture& fixture_;
  std::vector<RankGroups> groups_;  // by rank
  std::vector<std::unique_ptr<ThreadHost>> hosts_;
  std::vector<std::unique_ptr<StepRunner>> runners_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_THREAD_HOST_H_
