#include "actors/chunks/step/loss_scaler.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/ops/loss.h"

namespace troupe::actors {
namespace {

LossScaler::Options OptionsOf(double first_scale, std::int64_t interval) {
  LossScaler::Options options;
  options.first_scale = first_scale;
  options.rule.growth_interval = interval;
  return options;
}

class LossScalerTest : public testing::Test {
 protected:
  // Runs a step with `non_finite` gradients that are not finite; returns its
  // scale.
  double StepWith(LossScaler& scaler, double non_finite) {
    nn::StepScalars values;
    values.non_finite = non_finite;
    EXPECT_TRUE(kernels_->SetStepScalars(values, scalars_).ok());
    EXPECT_TRUE(scaler.BeginStep(scalars_).ok());
    const double scale = nn::ScalarsIn(scalars_).loss_scale;
    EXPECT_EQ(scaler.seed().data<double>()[nn::ops::kLossSum], scale);
    EXPECT_TRUE(scaler.EndStep(scalars_).ok());
    return scale;
  }

  nn::CachingAllocator allocator_;
  const std::unique_ptr<nn::Kernels> kernels_ = nn::CreateReferenceKernels();
  nn::Tensor scalars_ = nn::HostScalars({}, allocator_);
};

TEST_F(LossScalerTest, TheNextStepHasTheScaleOfTheOutcome) {
  const auto scaler = *LossScaler::Create(*kernels_, OptionsOf(8, 2));
  std::vector<double> scales;
  for (const double found : {1, 0, 0, 0, 5, 0}) {
    scales.push_back(StepWith(*scaler, found));
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 4, 4, 8, 8, 4}));
  EXPECT_EQ(nn::ScalarsIn(scalars_).step, -2) << "of skipped steps";
}

TEST_F(LossScalerTest, IsSaved) {
  const auto scaler = *LossScaler::Create(*kernels_, OptionsOf(8, 3));
  for (const double found : {1, 0, 0}) StepWith(*scaler, found);
  CheckpointShard shard;
  ASSERT_TRUE(scaler->CopyInto(shard).ok());
  ASSERT_EQ(shard.optimizer.size(), 1u);
  EXPECT_EQ(shard.optimizer[0].name, "loss_scaler");
  const nn::LossScaleState& state =
      nn::LossScaleIn(shard.optimizer[0].elements);
  EXPECT_EQ(state.scale, 4);
  EXPECT_EQ(state.finite_steps, 2);
  EXPECT_EQ(state.skipped_steps, 1);
}

// On an asynchronous device with another queue for updates, a step has the
// scale that the previous one left, in every order of work that events permit.
TEST_F(LossScalerTest, OnADeviceTheStepsFollowEachOther) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto kernels = nn::CreateQueuedKernels(
        nn::CreateReferenceKernels(),
        std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20), seed);
    LossScaler::Options options = OptionsOf(8, 2);
    options.update_queue = nn::CommQueue(0);
    const auto scaler = *LossScaler::Create(*kernels, options);
    std::vector<nn::Tensor> seen, kept;
    for (const double found : {1, 0, 0, 0, 5, 0}) {
      nn::Tensor scalars = *nn::Tensor::Create(
          {nn::kNumStepScalars}, nn::DType::kF64, kernels->allocator());
      nn::StepScalars values;
      values.non_finite = found;
      ASSERT_TRUE(kernels->SetStepScalars(values, scalars).ok());
      ASSERT_TRUE(scaler->BeginStep(scalars).ok());
      seen.push_back(*nn::CopyToHost(*kernels, nn::Queue::kCompute, scalars));
      nn::Wait(*kernels, nn::CommQueue(0),
               nn::Record(*kernels, nn::Queue::kCompute));
      ASSERT_TRUE(scaler->EndStep(scalars).ok());
      kept.push_back(scalars);  // the queue of updates still reads it
    }
    while (kernels->queues()->Progress()) {
    }
    std::vector<double> scales;
    for (const nn::Tensor& scalars : seen) {
      scales.push_back(nn::ScalarsIn(scalars).loss_scale);
    }
    ASSERT_EQ(scales, (std::vector<double>{8, 4, 4, 8, 8, 4})) << seed;
  }
}

}  // namespace
}  // namespace troupe::actors
