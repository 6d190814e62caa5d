// Batch norms in whole jobs. Synchronised ones give the same bits under every
// seed and on threads, and the losses and parameters of one rank with the whole
// batch. Others give the same bits under every seed, too, and when the job is
// stopped at any message and resumed.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/jobs/batch_split_fixture.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kNormSteps = 2;

// Returns a job with linear, batch norm with a ReLU, linear, batch norm and
// linear, in f64; one micro-batch per rank.
JobSpec NormedJob(int ranks) {
  JobSpec spec = SmallJob({ranks, Numbers::kExact, kNormSteps});
  spec.model = []() -> std::unique_ptr<nn::Module> {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    nn::BatchNorm::Options norm;
    norm.dtype = nn::DType::kF64;
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6, f64);
    norm.relu = true;
    model->Append<nn::BatchNorm1d>(6, norm);
    model->Append<nn::Linear>(6, 6, f64);
    norm.relu = false;
    model->Append<nn::BatchNorm1d>(6, norm);
    model->Append<nn::Linear>(6, 2, f64);
    return nn::ConvertSyncBatchNorm(std::move(model));
  };
  spec.plan.micro_batch_size = 0;  // one micro-batch per rank
  return spec;
}

TEST(SyncBatchNormJob, GivesTheSameBitsUnderEverySeed) {
  const JobSpec spec = NormedJob(4);
  const SimulatedRun expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.result.ok()) << expected.result.status();
  ASSERT_EQ(expected.reports.steps.size(),
            static_cast<std::size_t>(kNormSteps));
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/100, expected), "");
  EXPECT_EQ(ReportsOf(spec).losses(), expected.reports.losses());
}

TEST(SyncBatchNormJob, EqualsOneRankWithTheWholeBatch) {
  const TrainedValues one = TrainedValuesOf(NormedJob(1));
  ASSERT_EQ(one.losses.size(), static_cast<std::size_t>(kNormSteps));
  for (int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    ExpectNear(TrainedValuesOf(NormedJob(ranks)), one, /*tolerance=*/1e-9);
  }
}

// Returns a job whose replicas have running statistics of their own, which it
// evaluates with after each step.
JobSpec UnsynchronisedJob(int dp, int pp) {
  JobSpec spec = SmallJob({dp, Numbers::kFloat, /*steps=*/6});
  spec.model = []() -> std::unique_ptr<nn::Module> {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6);
    model->Append<nn::BatchNorm1d>(6);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(6, 6);
    model->Append<nn::BatchNorm1d>(6);
    model->Append<nn::Linear>(6, 2);
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp > 1) spec.plan.cuts = {3};
  spec.plan.micro_batch_size = 3;
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

TEST(BatchNormJob, EvaluatesToTheSameBitsUnderEverySeed) {
  for (const auto& [dp, pp] : {std::pair(4, 1), std::pair(2, 2)}) {
    JobSpec spec = UnsynchronisedJob(dp, pp);
    const SimulatedRun want = Simulate(spec, /*seed=*/0);
    ASSERT_TRUE(want.result.ok()) << want.result.status();
    ASSERT_EQ(want.reports.evaluations.size(), 6u);
    ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/60, want), "");
    // One rank that goes on from the checkpoint evaluates the same.
    spec.checkpoint.dir = FreshFolder(absl::StrCat("evaluated", dp));
    ASSERT_TRUE(Simulate(spec, /*seed=*/1).result.ok());
    JobSpec alone = UnsynchronisedJob(1, 1);
    alone.checkpoint.from = spec.checkpoint.dir + "/step-00000006";
    const SimulatedRun evaluated = Simulate(alone, /*seed=*/2);
    ASSERT_EQ(evaluated.reports.evaluations.size(), 1u);
    EXPECT_NEAR(evaluated.reports.evaluations[0].loss,
                want.reports.evaluations.back().loss, 1e-6);
  }
}

TEST(BatchNormJob, AStopAtAnyMessageChangesNoBit) {
  for (const auto& [dp, pp] : {std::pair(3, 1), std::pair(2, 2)}) {
    JobSpec spec = UnsynchronisedJob(dp, pp);
    spec.plan.micro_batch_size = dp == 3 ? 4 : 3;
    const std::string name = absl::StrCat("stopped", dp);
    const std::string straight_dir = FreshFolder(name + "_straight");
    spec.checkpoint.dir = straight_dir;
    const SimulatedRun straight = Simulate(spec, /*seed=*/0);
    ASSERT_TRUE(straight.result.ok()) << straight.result.status();
    int interrupted = 0;
    for (std::uint64_t seed : Seeds(30)) {
      const ResumedRun run =
          StopAndResume(spec, absl::StrCat(name, "_", seed), seed);
      ASSERT_TRUE(run.status().ok()) << run.status() << ReplayCommand(seed);
      interrupted += run.first.result->stopped;
      ASSERT_EQ(run.second.result->evaluation.loss,
                straight.result->evaluation.loss)
          << ReplayCommand(seed);
      const std::string file =
          absl::StrCat("/step-00000006/model", pp == 1 ? "" : "-00001-of-00002",
                       ".safetensors");
      ASSERT_EQ(FileBytes(run.dir + file), FileBytes(straight_dir + file))
          << ReplayCommand(seed);
    }
    EXPECT_GT(interrupted, 0);
  }
}

}  // namespace
}  // namespace troupe::actors
