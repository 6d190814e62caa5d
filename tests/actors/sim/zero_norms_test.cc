// Tests LAMB and LARS where owners have slices of parameters (ZeRO): the norms
// of whole parameters are sums over all owners, so that training is that of
// one rank, to rounding.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/optim/layerwise.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using MakeOptimizerFn = decltype(JobSpec::optimizer);

MakeOptimizerFn LambWith(const nn::OptimizerOptions& common) {
  return [common] {
    nn::LambOptions lamb;
    lamb.lr = 0.1;
    lamb.weight_decay = 0.1;
    lamb.common = common;
    return std::make_unique<nn::Lamb>(lamb);
  };
}

MakeOptimizerFn LarsWith(const nn::OptimizerOptions& common) {
  return [common] {
    nn::LarsOptions lars;
    lars.lr = 0.5;
    lars.weight_decay = 0.1;
    lars.trust_coefficient = 0.5;
    lars.common = common;
    return std::make_unique<nn::Lars>(lars);
  };
}

JobSpec SpecOf(int dp, const MakeOptimizerFn& optimizer) {
  JobSpec spec = SmallJob({dp, Numbers::kFloat, /*steps=*/4});
  spec.optimizer = optimizer;
  return spec;
}

// Returns the same job with owners of slices. The seed chooses stage, pipeline,
// order and place of reductions, and whether each micro-batch is reduced.
JobSpec Sliced(JobSpec spec, std::uint64_t seed) {
  const int dp = spec.plan.mesh.dp();
  spec.plan.zero_stage = 1 + static_cast<int>(seed % 3);
  if (seed / 3 % 2 == 1) {
    spec.plan.mesh = pipeline::Mesh(dp, /*pp=*/2);
    spec.plan.cuts = {2};
  }
  if (seed / 6 % 2 == 1) spec.plan.micro_batch_size = 3;
  switch (seed / 12 % 3) {
    case 1:
      spec.plan.inline_bytes = 1 << 30;
      break;
    case 2:
      spec.plan.cross_step = true;
      break;
  }
  return spec;
}

void ExpectNear(const SimulatedRun& run, const SimulatedRun& want) {
  ASSERT_EQ(run.check, absl::OkStatus());
  const std::vector<double> losses = run.reports.losses();
  ASSERT_EQ(losses.size(), want.reports.losses().size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], want.reports.losses()[i], 2e-6) << "step " << i;
  }
}

TEST(ZeroNormsTest, NormsOfSlicesAreThoseOfOneRank) {
  nn::OptimizerOptions plain, clips;
  clips.clip_grad_norm = 0.01;
  clips.skip_nonfinite = true;
  clips.ema_decay = 0.9;
  for (const auto& optimizer :
       {LambWith(plain), LambWith(clips), LarsWith(plain), LarsWith(clips)}) {
    const SimulatedRun want = Simulate(SpecOf(1, optimizer), std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    for (const int dp : {2, 4}) {
      for (const std::uint64_t seed : Seeds(36)) {
        SCOPED_TRACE(absl::StrCat("dp ", dp, ReplayCommand(seed)));
        ExpectNear(Simulate(Sliced(SpecOf(dp, optimizer), seed), seed), want);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// Each order of messages gives one set of bits.
TEST(ZeroNormsTest, HasOneSetOfBits) {
  for (const int stage : {1, 2, 3}) {
    JobSpec spec = SpecOf(3, LambWith({}));
    spec.plan.zero_stage = stage;
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    for (const std::uint64_t seed : Seeds(20)) {
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus()) << ReplayCommand(seed);
      ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
