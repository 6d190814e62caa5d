// Gradients that are summed over replicas in another dtype than their own
// (PlanOptions::reduction_dtype).

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "tests/actors/jobs/one_weight_job.h"
#include "tests/actors/jobs/queued_job.h"
#include "tests/actors/jobs/stages_that_clip.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

void ExpectSumIn(std::optional<nn::DType> dtype, double sum,
                 const std::vector<float>& targets, std::int64_t inline_bytes) {
  JobSpec spec = OneWeightJob(targets);
  spec.plan.reduction_dtype = dtype;
  spec.plan.inline_bytes = inline_bytes;
  ExpectSum(sum, targets, spec);
}

// Each gradient is 257, which bf16 rounds to 256.
TEST(ReductionDTypeTest, GradientsAreRoundedBeforeTheyAreAdded) {
  const std::vector<float> targets(2, -128.5);
  for (const std::int64_t inline_bytes : {0, 1 << 20}) {
    ExpectSumIn(std::nullopt, 514, targets, inline_bytes);
    ExpectSumIn(nn::DType::kF32, 514, targets, inline_bytes);
    ExpectSumIn(nn::DType::kBF16, 512, targets, inline_bytes);
    ExpectSumIn(nn::DType::kF16, 514, targets, inline_bytes);
  }
}

// In (256 + 1) + (1 + 1) the first sum is a tie, and is rounded to 256. If the
// whole sum of 259 was rounded once, it would be 260.
TEST(ReductionDTypeTest, EachSumIsRounded) {
  const std::vector<float> targets = {-128, -0.5, -0.5, -0.5};
  for (const std::int64_t inline_bytes : {0, 1 << 20}) {
    ExpectSumIn(std::nullopt, 259, targets, inline_bytes);
    ExpectSumIn(nn::DType::kBF16, 258, targets, inline_bytes);
  }
}

TEST(ReductionDTypeTest, TheDTypeOfTheGradientsChangesNoBit) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/6);
  const Reports plain = ReportsOf(spec);
  spec.plan.reduction_dtype = nn::DType::kF32;
  EXPECT_EQ(ReportsOf(spec).losses(), plain.losses());
  spec.plan.reduction_dtype = nn::DType::kBF16;
  EXPECT_NE(ReportsOf(spec).losses(), plain.losses());
}

TEST(ReductionDTypeTest, OneReplicaReducesNothing) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/4);
  const Reports plain = ReportsOf(spec);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  EXPECT_EQ(ReportsOf(spec).losses(), plain.losses());
}

TEST(ReductionDTypeTest, SumsOfAnIntegerAreRefused) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/1);
  spec.plan.reduction_dtype = nn::DType::kI32;
  EXPECT_EQ(RunJob(spec).status().message(),
            "plan: reduction_dtype is no floating type");
}

// --- The same bits under every seed, whatever overlaps ---

JobSpec RoundedJob(const std::function<void(JobSpec&)>& edit) {
  SmallJobOptions options;
  options.ranks = 2;
  options.steps = 4;
  JobSpec spec = SmallJob(options);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  if (edit) edit(spec);
  return spec;
}

void ExpectOneSumUnderEverySeed(const JobSpec& spec, std::uint64_t seeds) {
  const SimulatedRun want = Simulate(spec, {});
  ASSERT_TRUE(want.result.ok()) << want.result.status();
  ASSERT_EQ(DifferenceUnderSeeds(spec, seeds, want), "");
}

TEST(ReductionDTypeTest, SimulatedReplicas) {
  ExpectOneSumUnderEverySeed(RoundedJob(nullptr), 200);
}

TEST(ReductionDTypeTest, SimulatedStepsThatOverlap) {
  const auto across = [](JobSpec& spec) { spec.plan.cross_step = true; };
  const SimulatedRun want = Simulate(RoundedJob(nullptr), {});
  const JobSpec spec = RoundedJob(across);
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/200, want), "");
}

TEST(ReductionDTypeTest, SimulatedStagesThatLookAtAllGradients) {
  ExpectOneSumUnderEverySeed(RoundedJob(CutIntoStagesThatClip), 100);
}

TEST(ReductionDTypeTest, OnDevicesThatWorkLater) {
  for (const int pp : {1, 2}) {
    JobSpec spec = LeNetJob(/*dp=*/2, pp);
    spec.plan.reduction_dtype = nn::DType::kBF16;
    const Outcome want = OnTheCpu(spec);
    ASSERT_TRUE(want.status.ok()) << want.status;
    for (std::uint64_t seed : Seeds(30)) {
      ASSERT_TRUE(OnQueuedDevices(spec, seed) == want) << ReplayCommand(seed);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
