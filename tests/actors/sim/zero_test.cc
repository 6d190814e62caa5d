// Tests ZeRO stage 1: each replica has the optimizer's states for one slice of
// each bucket, updates it and gathers those of the others. The parameters have
// the bits of replicas that each have all states.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using MakeOptimizerFn = decltype(JobSpec::optimizer);

MakeOptimizerFn AdamWith(const nn::OptimizerOptions& common) {
  return [common] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common = common;
    return std::make_unique<nn::Adam>(adam);
  };
}

JobSpec SpecOf(int dp, int pp, int stage, std::int64_t steps = 3) {
  JobSpec spec = SmallJob({dp, Numbers::kFloat, steps, /*fused=*/false,
                           /*momentum=*/0.9});
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp == 2) spec.plan.cuts = {2};
  spec.plan.zero_stage = stage;
  return spec;
}

void ExpectTheBitsOfWholeStates(JobSpec spec, std::uint64_t seeds) {
  spec.plan.zero_stage = 0;
  const SimulatedRun want = Simulate(spec, std::uint64_t{0});
  ASSERT_EQ(want.check, absl::OkStatus());
  spec.plan.zero_stage = 1;
  for (const std::uint64_t seed : Seeds(seeds)) {
    const SimulatedRun run = Simulate(spec, seed);
    ASSERT_EQ(run.check, absl::OkStatus()) << "seed " << seed;
    ASSERT_EQ(Difference(run, want), "") << "seed " << seed;
  }
}

TEST(ZeroTest, HasTheBitsOfWholeStates) {
  for (const int pp : {1, 2}) {
    for (const int dp : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE(absl::StrCat("dp ", dp, ", pp ", pp));
      JobSpec spec = SpecOf(dp, pp, 1);
      if (dp == 8) spec.plan.micro_batch_size = 1;
      ExpectTheBitsOfWholeStates(spec, 20);
      nn::OptimizerOptions common;
      common.ema_decay = 0.9;
      spec.optimizer = AdamWith(common);
      ExpectTheBitsOfWholeStates(spec, 20);
    }
  }
}

TEST(ZeroTest, HasTheBitsOfWholeStatesWhereReductionsAreInline) {
  JobSpec spec = SpecOf(4, 1, 1);
  spec.plan.inline_bytes = 1 << 30;
  ExpectTheBitsOfWholeStates(spec, 50);
}

TEST(ZeroTest, HasTheBitsOfWholeStatesIfGradientsAreReducedInAnotherDType) {
  JobSpec spec = SpecOf(3, 1, 1);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  ExpectTheBitsOfWholeStates(spec, 50);
}

// Clipping adds up the squares of all slices in another order, and skipped
// steps are found in any slice.
TEST(ZeroTest, ClipsBySlices) {
  for (const int pp : {1, 2}) {
    JobSpec spec = SpecOf(4, pp, 0);
    nn::OptimizerOptions common;
    common.clip_grad_norm = 0.01;
    common.skip_nonfinite = true;
    spec.optimizer = AdamWith(common);
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    spec.plan.zero_stage = 1;
    for (const std::uint64_t seed : Seeds(50)) {
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus()) << "seed " << seed;
      const std::vector<double> losses = run.reports.losses();
      ASSERT_EQ(losses.size(), want.reports.losses().size());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], want.reports.losses()[i], 1e-6);
      }
    }
  }
}

// Returns the losses of a job that goes on with the newest checkpoint in `dir`.
std::vector<double> LossesFrom(const std::string& dir, int dp, int stage,
                               const MakeOptimizerFn& optimizer) {
  JobSpec spec = SpecOf(dp, 1, stage, /*steps=*/6);
  spec.optimizer = optimizer;
  spec.checkpoint.from = dir;
  const SimulatedRun run = Simulate(spec, std::uint64_t{1});
  EXPECT_EQ(run.check, absl::OkStatus());
  return run.reports.losses();
}

// A checkpoint has whole states, whoever owned them, so that any number of
// owners goes on from it.
TEST(ZeroTest, CheckpointsAreThoseOfWholeStates) {
  nn::OptimizerOptions common;
  common.ema_decay = 0.9;
  const MakeOptimizerFn optimizer = AdamWith(common);
  std::vector<std::string> dirs;
  for (const int stage : {0, 1}) {
    dirs.push_back(FreshFolder(absl::StrCat("zero_stage_", stage)));
    JobSpec spec = SpecOf(2, 1, stage);
    spec.optimizer = optimizer;
    spec.checkpoint.dir = dirs.back();
    spec.checkpoint.every = 3;
    spec.checkpoint.compare_replicas = true;
    const SimulatedRun run = Simulate(spec, std::uint64_t{7});
    ASSERT_EQ(run.check, absl::OkStatus());
    ASSERT_EQ(run.reports.checkpoints.size(), 1u);
    dirs.back() = run.reports.checkpoints[0];
  }
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    EXPECT_EQ(FileBytes(dirs[1] + file), FileBytes(dirs[0] + file)) << file;
  }
  for (const int dp : {2, 4}) {
    for (const int stage : {0, 1}) {
      EXPECT_EQ(LossesFrom(dirs[1], dp, stage, optimizer),
                LossesFrom(dirs[0], dp, 0, optimizer))
          << "dp " << dp << ", stage " << stage;
    }
  }
}

TEST(ZeroTest, RefusesNormsOfParameters) {
  JobSpec spec = SpecOf(2, 1, 1);
  spec.optimizer = [] { return std::make_unique<nn::Lamb>(nn::LambOptions()); };
  const SimulatedRun run = Simulate(spec, std::uint64_t{0});
  EXPECT_NE(run.result.status().message().find("zero_stage = 1"),
            std::string::npos)
      << run.result.status();
}

TEST(ZeroTest, RefusesHigherStagesByName) {
  const SimulatedRun run = Simulate(SpecOf(2, 1, 3), std::uint64_t{0});
  EXPECT_NE(run.result.status().message().find("zero_stage = 3"),
            std::string::npos)
      << run.result.status();
}

}  // namespace
}  // namespace troupe::actors
