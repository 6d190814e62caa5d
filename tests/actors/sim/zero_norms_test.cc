// Tests LAMB and LARS where ranks have parts of parameters, slices of owners
// (ZeRO) or pieces along tp: the norms of whole parameters are sums over all
// ranks, so that training is that of one rank, to rounding.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/optim/layerwise.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

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
    // Counting a norm twice would change its quotient by another alone.
    lars.eps = 0.05;
    lars.common = common;
    return std::make_unique<nn::Lars>(lars);
  };
}

JobSpec SpecOf(int dp, const MakeOptimizerFn& optimizer) {
  JobSpec spec = SmallJob({dp, Numbers::kFloat, /*steps=*/4});
  spec.optimizer = optimizer;
  return spec;
}

// Returns the same job in a pipeline, or not, as the seed chooses, with its
// order and place of reductions, and whether each micro-batch is reduced.
JobSpec LaidOutBy(std::uint64_t seed, JobSpec spec) {
  const pipeline::Mesh& mesh = spec.plan.mesh;
  if (seed % 2 == 1) {
    spec.plan.mesh = pipeline::Mesh(mesh.dp(), /*pp=*/2, mesh.tp());
    spec.plan.cuts = {2};
  }
  if (seed / 2 % 2 == 1) spec.plan.micro_batch_size = 3;
  switch (seed / 4 % 3) {
    case 1:
      spec.plan.inline_bytes = 1 << 30;
      break;
    case 2:
      spec.plan.cross_step = true;
      break;
  }
  return spec;
}

// Returns the same job with owners of slices, at a stage that the seed chooses.
JobSpec Sliced(JobSpec spec, std::uint64_t seed) {
  spec.plan.zero_stage = 1 + static_cast<int>(seed % 3);
  return LaidOutBy(seed / 3, std::move(spec));
}

// Returns a job whose ranks along tp have pieces, or one rank the whole.
JobSpec PiecesOf(int tp, int dp, const MakeOptimizerFn& optimizer) {
  SmallJobOptions options;
  options.steps = 4;
  options.width = 8;
  options.pieces = true;
  JobSpec spec = SmallJob(options);
  spec.plan.mesh = pipeline::Mesh(dp, /*pp=*/1, tp);
  spec.optimizer = optimizer;
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

// Two of four ranks along tp have padding alone of the last layer.
TEST(ZeroNormsTest, NormsOfPiecesAreThoseOfOneRank) {
  nn::OptimizerOptions plain, clips;
  clips.clip_grad_norm = 0.01;
  clips.skip_nonfinite = true;
  for (const auto& optimizer : {LambWith(clips), LarsWith(plain)}) {
    const SimulatedRun want =
        Simulate(PiecesOf(1, 1, optimizer), std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    for (const Layout& layout :
         {Layout{2, 1, 1}, Layout{2, 2, 1}, Layout{4, 1, 1}}) {
      for (const std::uint64_t seed : Seeds(layout.dp > 1 ? 48 : 12)) {
        SCOPED_TRACE(absl::StrCat(layout.ToString(), ReplayCommand(seed)));
        JobSpec spec = PiecesOf(layout.tp, layout.dp, optimizer);
        if (layout.dp > 1) spec.plan.zero_stage = static_cast<int>(seed % 4);
        spec = LaidOutBy(layout.dp > 1 ? seed / 4 : seed, std::move(spec));
        ExpectNear(Simulate(spec, seed), want);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// Copies, pieces of a padded vocabulary, and parameters whose gradients ranks
// along tp have in parts.
TEST(ZeroNormsTest, AGptInPiecesHasTheLossesOfOneRank) {
  for (const auto& optimizer : {LambWith({}), LarsWith({})}) {
    const SimulatedRun one =
        Simulate(GptJob({1, 1, 1}, optimizer), std::uint64_t{0});
    ASSERT_EQ(one.check, absl::OkStatus());
    for (const Layout& layout :
         {Layout{2, 1, 1}, Layout{2, 2, 1, /*zero=*/2},
          Layout{2, 1, 2, /*zero=*/0, /*shares_tokens=*/true}}) {
      SCOPED_TRACE(layout.ToString());
      const SimulatedRun run =
          Simulate(GptJob(layout, optimizer), std::uint64_t{1});
      ASSERT_EQ(run.check, absl::OkStatus());
      ExpectNear(run.reports, one.reports);
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
  for (const int stage : {0, 1}) {
    JobSpec spec = PiecesOf(/*tp=*/2, /*dp=*/2, LambWith({}));
    spec.plan.zero_stage = stage;
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    for (const std::uint64_t seed : Seeds(20)) {
      ASSERT_EQ(Difference(Simulate(spec, seed), want), "")
          << ReplayCommand(seed);
    }
    EXPECT_EQ(ReportsOf(spec).losses(), want.reports.losses()) << "on threads";
  }
}

}  // namespace
}  // namespace troupe::actors
