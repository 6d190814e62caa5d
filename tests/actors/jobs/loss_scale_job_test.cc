// A loss scale in a job: a power of two changes no bit, and steps with one that
// is too large are skipped.

#include <memory>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

JobSpec ScaledJob(int dp, double loss_scale) {
  JobSpec spec = TinyCnnJob(dp, /*steps=*/6);
  spec.loss_scale = loss_scale;
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    sgd.common.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(sgd);
  };
  return spec;
}

TEST(LossScaleJobTest, APowerOfTwoChangesNoBit) {
  Reports plain;
  ASSERT_TRUE(RunJob(TinyCnnJob(/*dp=*/2, /*steps=*/6), &plain).ok());
  for (const double scale : {1.0, 0.25, 1024.0}) {
    Reports scaled;
    ASSERT_TRUE(RunJob(ScaledJob(2, scale), &scaled).ok());
    EXPECT_EQ(scaled.losses(), plain.losses()) << scale;
    for (const StepReport& step : scaled.steps) EXPECT_FALSE(step.skipped);
  }
}

TEST(LossScaleJobTest, AStepWithoutFiniteGradientsUpdatesNothing) {
  for (const int dp : {1, 2}) {
    JobSpec spec = ScaledJob(dp, 0x1p127);
    spec.shuffle = false;
    spec.plan.global_batch_size = 256;  // every step has all samples
    Reports reports;
    ASSERT_TRUE(RunJob(spec, &reports).ok());
    ASSERT_EQ(reports.steps.size(), 6u);
    for (const StepReport& step : reports.steps) {
      EXPECT_TRUE(step.skipped) << step.step;
      EXPECT_EQ(step.loss, reports.steps[0].loss) << step.step;
    }
  }
}

TEST(LossScaleJobTest, IsRefusedWhereItHasNoMeaning) {
  EXPECT_EQ(RunJob(ScaledJob(1, 0), nullptr).status().message(),
            "JobSpec.loss_scale is 0, must be above 0");
}

}  // namespace
}  // namespace troupe::actors
