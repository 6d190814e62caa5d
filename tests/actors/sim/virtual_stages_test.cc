// Tests ranks that hold several chunks of the model: they have the bits of more
// ranks with one chunk each, and of one rank with the same micro-batches.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kChunkSteps = 3;

// Returns a job with the model of MakeFourLayers(), on four micro-batches a
// replica.
JobSpec FourLayers(int dp, int pp, int chunks) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kExact, kChunkSteps});
  spec.model = MakeFourLayers;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  spec.plan.virtual_stages = chunks;
  if (pp * chunks == 4) spec.plan.cuts = {2, 4, 6};
  spec.plan.micro_batch_size = 6 / dp;
  return spec;
}

TEST(VirtualStagesTest, TwoChunksARankGiveTheBitsOfOneUnderEverySeed) {
  const SimulatedRun one = Simulate(FourLayers(1, 1, 1), /*seed=*/0);
  ASSERT_TRUE(one.result.ok()) << one.result.status();
  for (int chunks : {1, 2}) {
    const JobSpec spec = FourLayers(1, 4 / chunks, chunks);
    ASSERT_EQ(DifferenceUnderSeeds(spec, 200, one), "");
  }
}

TEST(VirtualStagesTest, WithReplicasToo) {
  const SimulatedRun flat = Simulate(FourLayers(2, 1, 1), /*seed=*/0);
  ASSERT_TRUE(flat.result.ok()) << flat.result.status();
  const JobSpec spec = FourLayers(2, 2, 2);
  ASSERT_EQ(DifferenceUnderSeeds(spec, 50, flat), "");
}

TEST(VirtualStagesTest, OnThreadsWithEvaluationAndCheckpoint) {
  std::vector<double> losses, test_losses;
  double next_loss = 0;
  for (int pp : {1, 4, 2}) {
    JobSpec spec = FourLayers(1, pp, pp == 2 ? 2 : 1);
    spec.test = spec.train;
    spec.checkpoint.dir = FreshFolder(absl::StrCat("virtual", pp));
    Reports reports;
    const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(reports.evaluations.size(), 1u);
    if (pp == 1) losses = reports.losses();
    EXPECT_EQ(reports.losses(), losses) << pp;
    test_losses.push_back(reports.evaluations[0].loss);
    EXPECT_EQ(test_losses.back(), test_losses[0]) << pp;
    // A job of one rank is resumed from its checkpoint.
    JobSpec rest = FourLayers(1, 1, 1);
    rest.checkpoint.dir = spec.checkpoint.dir;
    rest.checkpoint.resume = true;
    rest.steps = kChunkSteps + 1;
    Reports resumed;
    const absl::StatusOr<JobResult> went_on = RunJob(rest, &resumed);
    ASSERT_TRUE(went_on.ok()) << went_on.status();
    ASSERT_EQ(resumed.losses().size(), 1u);
    if (pp == 1) next_loss = resumed.losses()[0];
    EXPECT_EQ(resumed.losses()[0], next_loss) << pp;
  }
}

}  // namespace
}  // namespace troupe::actors
