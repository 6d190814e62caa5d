// Runs hand-written training loops on plain threads, each rank with a
// LoopEngine, to compare them with the job of an EngineFixture.
//
//   const EngineFixture job(options);
//   LoopRanks ranks(job, {});
//   ranks.Run([&](LoopRank& rank) {
//     for (std::int64_t step = 0; step < 6; ++step) {
//       rank.Train(job.Batches(rank.rank(), step));
//     }
//   });
//   ValuesOf(ranks.rank(1).engine().parameters().arena(0));

#ifndef TESTS_ACTORS_ENGINE_LOOP_RANKS_H_
#define TESTS_ACTORS_ENGINE_LOOP_RANKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/engine/loop/loop_engine.h"
#include "actors/tracing/trace.h"
#include "data/batch.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/modules/module.h"
#include "pipeline/parameter_plan.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/actors/engine/thread_host.h"

namespace troupe::actors {

// Returns an edit of a small job that makes batches of 16 samples, all of which
// count: with 1 or 2 ranks and micro-batches, every count is a power of two.
// `more`, if set, edits further.
std::function<void(JobSpec& spec)> PowersOfTwo(
    int ranks, int micro_batches,
    const std::function<void(JobSpec& spec)>& more = nullptr);

struct LoopOptions {
  bool exact_mean = false;
  bool static_graph = false;
  bool run_inline = false;  // whether reductions run on the compute strand
  // Whether the engine has no groups, like that of a model without DDP; only
  // for one rank.
  bool without_groups = false;
  bool optimizer = true;
  TraceSink* trace = nullptr;
  // Makes the model; null: that of the job.
  std::function<std::unique_ptr<nn::Module>()> model;
};

// The host of one rank's engine.
class LoopHost : public EngineHost, public ThreadWait {
 public:
  explicit LoopHost(const RankGroups* groups) : collectives_(groups) {}
  void Wire(LoopEngine* engine) { engine_ = engine; }

  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override {
    ++launches_;
    collectives_.Start(engine_->step(), action, group, collective, after);
  }
  // Returns the number of collectives so far.
  int launches() const { return launches_; }
  void Send(int, bool, int, const nn::TensorList&, const base::Event&) override;
  void AwaitNews() override;
  void TakeNews(bool expected) override;

 private:
  bool End();

  ThreadCollectives collectives_;
  LoopEngine* engine_ = nullptr;
  int launches_ = 0;
};

// One rank of a loop.
class LoopRank {
 public:
  LoopRank(const EngineFixture& job, int rank, const RankGroups* groups,
           const LoopOptions& options);

  int rank() const { return rank_; }
  LoopEngine& engine() { return *engine_; }
  const LoopHost& host() const { return host_; }
  nn::Module& module() { return *module_; }
  nn::Tape& tape() { return tape_; }

  // Returns the statistics of the loss of a batch, on the tape.
  nn::Tensor Loss(const data::Batch& batch);
  // Returns the factor that makes gradients those of the mean of `parts` equal
  // micro-batches; 1 with exact_mean.
  double ScaleOf(const nn::Tensor& stats, int parts = 1) const;
  // Runs a whole step: all but the last backward without a reduction. Fails the
  // test on errors.
  void Train(const StepBatches& batches);
  // Returns the sum of the losses of the last Train().
  double loss_sum() const { return loss_sum_; }

 private:
  const EngineFixture& job_;
  const int rank_;
  const RankGroups none_;
  LoopHost host_;
  std::unique_ptr<nn::Module> module_;
  std::unique_ptr<LoopEngine> engine_;
  nn::Tape tape_;
  double loss_sum_ = 0;
};

// The ranks of a loop that has the seed, mesh and buckets of a job.
class LoopRanks {
 public:
  LoopRanks(const EngineFixture& job, const LoopOptions& options);

  // Runs the program of each rank in a thread of its own.
  void Run(const std::function<void(LoopRank& rank)>& program);
  // The same with Train() on the job's batches of steps [0, steps).
  void Train(std::int64_t steps);
  LoopRank& rank(int rank) { return *ranks_[rank]; }

 private:
  const EngineFixture& job_;
  std::vector<RankGroups> groups_;  // one for each rank
  std::vector<std::unique_ptr<LoopRank>> ranks_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_LOOP_RANKS_H_
