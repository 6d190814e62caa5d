#include "tools/bench/nn/step_work.h"

#include "gtest/gtest.h"
#include "tools/bench/train_case.h"

namespace troupe::bench {
namespace {

double FlopsOf(const std::string& name, int ranks) {
  const auto spec = MakeTrainJob(name, ranks);
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto flops = StepFlops(*spec);
  EXPECT_TRUE(flops.ok()) << flops.status();
  return flops.value_or(0);
}

TEST(StepWork, ThreeForwardsLessTheGradientOfTheSamples) {
  const double linear = 2.0 * 64 * 2236 * 2236;
  const double relu = 64.0 * 2236;
  EXPECT_EQ(FlopsOf("mlp_25m", 1), 3 * (5 * linear + 4 * relu) - linear);
}

TEST(StepWork, IsThatOfOneRank) {
  EXPECT_EQ(FlopsOf("toy_mlp", 2), FlopsOf("toy_mlp", 1));
  EXPECT_GT(FlopsOf("toy_mlp", 1), 0);
}

// Images of 64x64 take 0.148 and 0.335 G multiply-adds, a twelfth of 224x224's.
TEST(StepWork, ResNetsHaveTheWorkOfTheirPaper) {
  const double images = 3 * 2 * 8;
  EXPECT_NEAR(FlopsOf("resnet18", 1) / images, 0.148e9, 0.006e9);
  EXPECT_NEAR(FlopsOf("resnet50", 1) / images, 0.335e9, 0.012e9);
}

TEST(StepWork, WhatRunsTwiceCountsOnce) {
  EXPECT_EQ(FlopsOf("gpt12_recomputed", 1), FlopsOf("gpt12", 1));
}

TEST(StepWork, APeakIsMeasured) {
  EXPECT_TRUE(MeasurePeak(/*bf16=*/false).native);
  EXPECT_GT(MeasurePeak(/*bf16=*/false).gflops, 0.1);
  EXPECT_GT(MeasurePeak(/*bf16=*/true).gflops, 0.1);
}

}  // namespace
}  // namespace troupe::bench
