// A job whose loss is a sum: gradients of micro-batches and ranks are added
// without a division, and the job reports the sum.

#include <cstddef>
#include <memory>
#include <vector>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr int kGlobalBatch = 32, kTests = 70;

// Returns a job whose loss is a mean if `lr_divisor` is 1, else a sum.
JobSpec ReducedJob(int dp, int micro_batch, double lr_divisor) {
  JobSpec spec = TinyCnnJob(dp, /*steps=*/6);
  spec.plan.micro_batch_size = micro_batch;
  if (lr_divisor != 1) spec.loss_reduction = nn::ops::LossReduction::kSum;
  spec.optimizer = [lr_divisor] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02 / lr_divisor;
    sgd.momentum = 0.9;
    return std::make_unique<nn::Sgd>(sgd);
  };
  return spec;
}

// The sum over a batch of 32 is 32 times the mean, and so are its gradient and
// the momentum: a power of two changes no bit of a mantissa.
TEST(LossReductionJobTest, ASumIsTheMeanTimesTheBatch) {
  for (const int dp : {1, 2}) {
    for (const int micro_batch : {4, kGlobalBatch / dp}) {
      const Reports mean = ReportsOf(ReducedJob(dp, micro_batch, 1));
      const Reports sum = ReportsOf(ReducedJob(dp, micro_batch, kGlobalBatch));
      ASSERT_EQ(sum.steps.size(), mean.steps.size());
      for (std::size_t i = 0; i < sum.steps.size(); ++i) {
        EXPECT_EQ(sum.steps[i].loss, kGlobalBatch * mean.steps[i].loss)
            << "step " << i << ", dp " << dp << ", " << micro_batch;
        EXPECT_EQ(sum.steps[i].accuracy, mean.steps[i].accuracy);
      }
      ASSERT_EQ(sum.evaluations.size(), 1u);
      EXPECT_EQ(sum.evaluations[0].count, kTests);
      EXPECT_DOUBLE_EQ(sum.evaluations[0].loss,
                       kTests * mean.evaluations[0].loss);
      EXPECT_EQ(sum.evaluations[0].accuracy, mean.evaluations[0].accuracy);
    }
  }
}

// A sum does not depend on how many targets each micro-batch or rank counts.
TEST(LossReductionJobTest, HowABatchIsCutChangesNoSum) {
  const auto losses = [](int dp, int micro_batch) {
    JobSpec spec = ReducedJob(dp, micro_batch, kGlobalBatch);
    nn::ops::CrossEntropyOptions options;
    options.ignore_index = 3;
    spec.loss = nn::ops::CrossEntropyLoss(options);
    return ReportsOf(spec).losses();
  };
  const std::vector<double> whole = losses(1, kGlobalBatch);
  const auto expect_near = [&](const std::vector<double>& cut) {
    ASSERT_EQ(cut.size(), whole.size());
    for (std::size_t i = 0; i < cut.size(); ++i) {
      EXPECT_NEAR(cut[i], whole[i], 1e-4 * whole[i]) << "step " << i;
    }
  };
  expect_near(losses(1, 2));
  expect_near(losses(2, 16));
  expect_near(losses(2, 2));
}

}  // namespace
}  // namespace troupe::actors
