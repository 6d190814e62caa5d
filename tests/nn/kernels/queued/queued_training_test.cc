// Training with all necessary waits computes the CPU's bits on a queued device,
// under every seed; without one of them it does not, under some seed.

#include "tests/nn/kernels/queued/queued_training.h"

#include <cstdint>
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/base/seeds.h"

namespace troupe::nn {
namespace {

constexpr std::uint64_t kSeeds = 200;

class QueuedTraining : public testing::TestWithParam<int> {};

TEST_P(QueuedTraining, HasTheBitsOfTheCpuUnderEverySeed) {
  Training training;
  training.ranks = GetParam();
  const Trained want = Train(training);
  ASSERT_TRUE(want.status.ok()) << want.status;
  ASSERT_EQ(want.losses.size(), 3u * GetParam());
  for (std::uint64_t seed : Seeds(kSeeds)) {
    training.seed = seed;
    const Trained got = Train(training);
    ASSERT_TRUE(got.status.ok()) << "seed " << seed << ": " << got.status;
    ASSERT_TRUE(got == want) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, QueuedTraining, testing::Values(1, 2));

// Returns the number of seeds tried until the bits differed; kSeeds: none did.
std::uint64_t SeedsUntilFound(int ranks, Forgotten forgotten) {
  Training training;
  training.ranks = ranks;
  const Trained want = Train(training);
  training.forgotten = forgotten;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    training.seed = seed;
    if (!(Train(training) == want)) return seed + 1;
  }
  return kSeeds;
}

TEST(QueuedTrainingFinds, AnUpdateThatDoesNotWaitForItsReduction) {
  EXPECT_LT(SeedsUntilFound(2, Forgotten::kReduction), kSeeds);
}

TEST(QueuedTrainingFinds, AReductionThatDoesNotWaitForItsGradients) {
  EXPECT_LT(SeedsUntilFound(2, Forgotten::kGradients), kSeeds);
}

TEST(QueuedTrainingFinds, ACopyThatDoesNotWaitForTheLastReader) {
  EXPECT_LT(SeedsUntilFound(1, Forgotten::kLastReader), kSeeds);
}

TEST(QueuedTrainingFinds, AForwardThatDoesNotWaitForItsBatch) {
  EXPECT_LT(SeedsUntilFound(1, Forgotten::kBatch), kSeeds);
}

TEST(QueuedTrainingFinds, ALossThatIsReadTooEarly) {
  EXPECT_LT(SeedsUntilFound(1, Forgotten::kLoss), kSeeds);
}

}  // namespace
}  // namespace troupe::nn
