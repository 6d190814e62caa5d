#include "nn/kernels/cuda/libraries/candidates.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::nn::cuda {
namespace {

TEST(FastestCandidate, HasTheQuickestSample) {
  EXPECT_EQ(FastestCandidate({{8, 8, 8}, {9, 5, 9}, {6, 6, 6}}), 1);
}

TEST(FastestCandidate, IsTheLibrarysFirstWithinTheNoise) {
  EXPECT_EQ(FastestCandidate({{10.0f}, {9.9f}}), 0);
  EXPECT_EQ(FastestCandidate({{10.0f}, {9.7f}}), 1);
  // Each candidate is compared with the best so far, not with its neighbour.
  EXPECT_EQ(FastestCandidate({{10.0f}, {9.9f}, {9.81f}}), 0);
}

TEST(FastestCandidate, IsNoneThatFailed) {
  EXPECT_EQ(FastestCandidate({{}, {3}, {}}), 1);
  EXPECT_EQ(FastestCandidate({{}, {}}), -1);
  EXPECT_EQ(FastestCandidate({}), -1);
}

TEST(RunsPerSample, MakeASampleOfAFifthOfAMillisecond) {
  EXPECT_EQ(RunsPerSample(0.0f), 20);
  EXPECT_EQ(RunsPerSample(0.005f), 20);
  EXPECT_EQ(RunsPerSample(0.05f), 4);
  EXPECT_EQ(RunsPerSample(0.3f), 1);
  EXPECT_EQ(RunsPerSample(100.0f), 1);
  EXPECT_EQ(RunsPerSample(std::numeric_limits<float>::infinity()), 1);
  EXPECT_EQ(RunsPerSample(std::numeric_limits<float>::quiet_NaN()), 20);
}

}  // namespace
}  // namespace troupe::nn::cuda
