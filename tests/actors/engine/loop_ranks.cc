#include "tests/actors/engine/loop_ranks.h"

#include <sched.h>

#include <thread>

#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "pipeline/partition.h"
#include "tests/actors/engine/test_groups.h"

namespace troupe::actors {

std::function<void(JobSpec& spec)> PowersOfTwo(
    int ranks, int micro_batches,
    const std::function<void(JobSpec& spec)>& more) {
  return [=](JobSpec& spec) {
    spec.loss = [](nn::Context& ctx, const nn::Tensor& output,
                   const nn::Tensor& target) {
      return nn::ops::MeanSquaredError(ctx, output, target);
    };
    spec.plan.global_batch_size = 16;
    spec.plan.micro_batch_size = 16 / ranks / micro_batches;
    if (more) more(spec);
  };
}

void LoopHost::Send(int, bool, int, const nn::TensorList&, const base::Event&) {
  ADD_FAILURE() << "a loop sends nothing to other stages";
}

bool LoopHost::End() {
  return collectives_.End([&](std::int64_t step, int action) {
    return engine_->CollectiveDone(step, action);
  });
}

void LoopHost::AwaitNews() {
  while (!End()) {
    if (!collectives_.Progress()) sched_yield();
  }
}

void LoopHost::TakeNews(bool expected) {
  if (!expected) return;
  collectives_.Progress();
  End();
}

LoopRank::LoopRank(const EngineFixture& job, int rank, const RankGroups* groups,
                   const LoopOptions& options)
    : job_(job), rank_(rank), host_(groups == nullptr ? &none_ : groups) {
  const JobSpec& spec = job.spec();
  module_ = options.model
                ? options.model()
                : pipeline::BuildStage(spec.model, /*cuts=*/{}, 0).value();
  LoopEngine::Setup setup;
  setup.rank = rank;
  setup.groups = groups;
  setup.kernels = spec.kernels().value();
  setup.module = module_.get();
  setup.seed = spec.seed;
  setup.exact_mean = options.exact_mean;
  setup.static_graph = options.static_graph;
  setup.trace = options.trace;
  pipeline::ParameterPlanOptions choices;
  choices.mesh = job.plan().mesh;
  choices.buckets = spec.plan.buckets;
  choices.inline_bytes = options.run_inline ? 1 << 30 : 0;
  const pipeline::Plan plan =
      pipeline::MakeParameterPlan(choices, module_->Parameters(),
                                  setup.kernels->device())
          .value();
  setup.plan = &plan;
  engine_ = LoopEngine::Create(setup, &host_, &host_).value();
  host_.Wire(engine_.get());
  if (!options.optimizer) return;
  const absl::Status attached =
      engine_->AttachOptimizer([&spec] { return MakeOptimizer(spec); });
  EXPECT_TRUE(attached.ok()) << attached;
}

nn::Tensor LoopRank::Loss(const data::Batch& batch) {
  nn::Context ctx(engine_->kernels(), &tape_);
  const nn::Tensor output = (*module_)(ctx, batch.inputs);
  const nn::Tensor loss = job_.spec().loss(ctx, output, batch.targets);
  EXPECT_TRUE(ctx.ok()) << ctx.status();
  return loss;
}

double LoopRank::ScaleOf(const nn::Tensor& stats, int parts) const {
  if (engine_->exact_mean()) return 1;
  return 1 / (stats.data<double>()[nn::ops::kLossCount] * parts);
}

void LoopRank::Train(const StepBatches& batches) {
  absl::Status status = engine_->ZeroGrad();
  ASSERT_TRUE(status.ok()) << status;
  loss_sum_ = 0;
  const int parts = static_cast<int>(batches.size());
  for (int m = 0; m < parts; ++m) {
    LoopBackward backward;
    backward.tape = &tape_;
    backward.loss = Loss(batches[m]);
    backward.scale = ScaleOf(backward.loss, parts);
    backward.synced = m + 1 == parts;
    loss_sum_ += backward.loss.data<double>()[nn::ops::kLossSum];
    status = engine_->Backward(backward);
    ASSERT_TRUE(status.ok()) << status;
  }
  status = engine_->Step();
  ASSERT_TRUE(status.ok()) << status;
}

LoopRanks::LoopRanks(const EngineFixture& job, const LoopOptions& options)
    : job_(job), groups_(MakeTestGroups(job.plan().mesh)) {
  for (int rank = 0; rank < job.plan().mesh.size(); ++rank) {
    const RankGroups* const groups =
        options.without_groups ? nullptr : &groups_[rank];
    ranks_.push_back(std::make_unique<LoopRank>(job, rank, groups, options));
  }
}

void LoopRanks::Run(const std::function<void(LoopRank& rank)>& program) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks_) {
    threads.emplace_back([&program, &rank] { program(*rank); });
  }
  for (std::thread& thread : threads) thread.join();
}

void LoopRanks::Train(std::int64_t steps) {
  Run([&](LoopRank& rank) {
    for (std::int64_t step = 0; step < steps; ++step) {
      rank.Train(job_.Batches(rank.rank(), step));
    }
  });
}

}  // namespace troupe::actors
