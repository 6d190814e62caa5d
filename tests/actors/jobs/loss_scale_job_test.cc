// A loss scale in a job: a power of two changes no bit, and steps with one that
// is too large are skipped.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "actors/job.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/caching_allocator.h"
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

// Returns four batches of 16 images, and before them `spoiled` batches of
// infinities, whose gradients are not finite.
data::DatasetPtr Images(std::int64_t spoiled) {
  static nn::CachingAllocator memory;
  const std::int64_t bad = 16 * spoiled, rows = bad + 64;
  const nn::Shape shape = {rows, 28, 28, 1};
  const nn::Tensor inputs = *nn::Tensor::Create(shape, nn::DType::kF32, memory);
  const nn::Tensor targets =
      *nn::Tensor::Create({rows}, nn::DType::kI64, memory);
  const std::int64_t each = 28 * 28;
  for (std::int64_t i = 0; i < rows * each; ++i) {
    const std::int64_t of_good = i - bad * each;
    inputs.data<float>()[i] =
        of_good < 0 ? std::numeric_limits<float>::infinity()
                    : static_cast<float>(of_good * 7 % 31) / 31 - 0.5f;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    targets.data<std::int64_t>()[i] = (i + 160 - bad) * 3 % 10;
  }
  return *data::MakeInMemoryDataset(inputs, targets, /*num_classes=*/10);
}

JobSpec SkippingJob(const OptimizerFactory& optimizer, int dp, int pp,
                    std::int64_t spoiled) {
  JobSpec spec = TinyCnnJob(dp, /*steps=*/4 + spoiled);
  spec.train = Images(spoiled);
  spec.test = nullptr;
  spec.shuffle = false;
  spec.stop_on_nan = false;
  spec.loss_scale = 4;
  spec.optimizer = optimizer;
  spec.plan.global_batch_size = 16;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp == 2) {
    spec.plan.cuts = {6};
    spec.plan.micro_batch_size = 4;
  }
  return spec;
}

std::vector<OptimizerFactory> SkippingOptimizers() {
  return {[] {
            nn::SgdOptions sgd;
            sgd.lr = 0.05;
            sgd.momentum = 0.9;
            sgd.dampening = 0.5;  // makes the first update differ from others
            sgd.common.skip_nonfinite = true;
            return std::make_unique<nn::Sgd>(sgd);
          },
          [] {
            nn::AdamOptions adam;
            adam.common.skip_nonfinite = true;
            adam.common.ema_decay = 0.5;
            return std::make_unique<nn::Adam>(adam);
          },
          [] {
            nn::LambOptions lamb;
            lamb.common.skip_nonfinite = true;
            return std::make_unique<nn::Lamb>(lamb);
          }};
}

// Steps that are skipped are none of the optimizer's, as with PyTorch's
// GradScaler: those after them have the bits of a run without them.
TEST(LossScaleJobTest, ASkippedStepIsNoUpdate) {
  for (const OptimizerFactory& optimizer : SkippingOptimizers()) {
    for (const auto& [dp, pp] :
         {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2)}) {
      const std::vector<double> want =
          ReportsOf(SkippingJob(optimizer, dp, pp, /*spoiled=*/0)).losses();
      for (const std::int64_t spoiled : {1, 2}) {
        const Reports reports =
            ReportsOf(SkippingJob(optimizer, dp, pp, spoiled));
        const std::vector<double> losses = reports.losses();
        ASSERT_EQ(losses.size(), want.size() + spoiled);
        EXPECT_TRUE(reports.steps[spoiled - 1].skipped);
        EXPECT_EQ(std::vector<double>(losses.begin() + spoiled, losses.end()),
                  want)
            << "dp=" << dp << " pp=" << pp;
      }
    }
  }
}

// The number of skipped steps is saved, and a resumed run has the bits of one
// in one piece.
TEST(LossScaleJobTest, AResumedRunKnowsWhatWasSkipped) {
  for (const OptimizerFactory& optimizer : SkippingOptimizers()) {
    JobSpec spec = SkippingJob(optimizer, /*dp=*/2, /*pp=*/1, /*spoiled=*/2);
    const std::vector<double> whole = ReportsOf(spec).losses();
    for (const std::int64_t at : {1, 3}) {
      spec.checkpoint.dir = FreshFolder("skipped");
      spec.checkpoint.resume = false;
      spec.steps = at;
      EXPECT_EQ(ReportsOf(spec).info.skipped_steps, 0);
      spec.checkpoint.resume = true;
      spec.steps = 6;
      const Reports rest = ReportsOf(spec);
      EXPECT_EQ(rest.info.skipped_steps, std::min<std::int64_t>(at, 2));
      const std::vector<double> losses = rest.losses();
      EXPECT_EQ(std::vector<double>(losses.end() - 3, losses.end()),
                std::vector<double>(whole.end() - 3, whole.end()))
          << at;
    }
  }
}

TEST(LossScaleJobTest, IsRefusedWhereItHasNoMeaning) {
  EXPECT_EQ(RunJob(ScaledJob(1, 0), nullptr).status().message(),
            "JobSpec.loss_scale is 0, must be above 0");
}

}  // namespace
}  // namespace troupe::actors
