#include "actors/chunks/step/step_loss.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/ops/loss.h"

namespace troupe::actors {
namespace {

nn::StepScalars RateOf(double lr) {
  nn::StepScalars values;
  values.lr = lr;
  return values;
}

class StepLossTest : public testing::Test {
 protected:
  nn::Tensor Stats(double sum, double count, double correct) {
    nn::Tensor stats = nn::Tensor::Empty({nn::ops::kNumLossStats},
                                         nn::DType::kF64, allocator_);
    stats.data<double>()[nn::ops::kLossSum] = sum;
    stats.data<double>()[nn::ops::kLossCount] = count;
    stats.data<double>()[nn::ops::kLossCorrect] = correct;
    return stats;
  }

  StepLoss MakeLoss(bool stop_on_nan = true) {
    return *StepLoss::Create(*kernels_, {stop_on_nan});
  }
  static LossBits Ended(StepLoss& loss) {
    EXPECT_TRUE(loss.EndStep().ok());
    return loss.Take().value().value();
  }

  nn::CachingAllocator allocator_;
  const std::unique_ptr<nn::Kernels> kernels_ = nn::CreateReferenceKernels();
};

TEST_F(StepLossTest, AddsMicroBatchesAndBeginsAnew) {
  StepLoss loss = MakeLoss();
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(3, 4, 1)).ok());
  ASSERT_TRUE(loss.Add(1, Stats(5, 4, 3)).ok());
  const nn::StepScalars& scalars = nn::ScalarsIn(loss.scalars());
  EXPECT_EQ(scalars.lr, 0.5);
  EXPECT_EQ(scalars.step, 4);
  EXPECT_EQ(scalars.loss_count, 8);
  EXPECT_FALSE(loss.Take().value().has_value()) << "the step goes on";
  const LossBits bits = Ended(loss);
  EXPECT_EQ(bits.mean(), 1);
  EXPECT_EQ(bits.accuracy(), 0.5);
  EXPECT_EQ(bits.skipped, 0u);
  EXPECT_FALSE(loss.Take().value().has_value()) << "taken";
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 5, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(1, 2, 0)).ok());
  EXPECT_EQ(FromBits(Ended(loss).count), 2);
}

// The norm is that of the mean gradients, before clipping.
TEST_F(StepLossTest, SaysTheNormOfTheGradients) {
  StepLoss loss = MakeLoss();
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 0, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(1, 4, 0)).ok());
  nn::StepScalars& scalars = nn::ScalarsIn(loss.scalars());
  const double scale = scalars.loss_scale;
  scalars.square_sum = 144 * scale * scale;
  scalars.SetClipFactor(/*max_norm=*/1);
  EXPECT_LT(scalars.grad_factor, 1);
  EXPECT_EQ(FromBits(Ended(loss).grad_norm), 3);
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 1, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(1, 4, 0)).ok());
  EXPECT_EQ(FromBits(Ended(loss).grad_norm), 0) << "nobody asked";
}

TEST_F(StepLossTest, SaysThatAStepWasSkipped) {
  StepLoss loss = MakeLoss();
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 0, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(1, 1, 0)).ok());
  nn::ScalarsIn(loss.scalars()).non_finite = 2;
  EXPECT_EQ(Ended(loss).skipped, 1u);
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 1, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(1, 1, 0)).ok());
  EXPECT_EQ(Ended(loss).skipped, 0u);
}

constexpr char kNaN[] =
    "the loss of step 5, micro-batch 1 is nan; lower the learning rate, or "
    "set JobSpec.stop_on_nan = false to go on";
constexpr char kUncounted[] =
    "the loss of step 5 is nan: no target of its global batch counts; change "
    "the targets that the loss ignores, or set JobSpec.stop_on_nan = false to "
    "go on";

TEST_F(StepLossTest, StopsAtALossThatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  StepLoss loss = MakeLoss();
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  EXPECT_EQ(loss.Add(1, Stats(nan, 4, 0)), absl::FailedPreconditionError(kNaN));
  ASSERT_TRUE(loss.BeginStep(StepKind::kEvaluate, 0, {}).ok());
  EXPECT_TRUE(loss.Add(0, Stats(nan, 4, 0)).ok());
  StepLoss tolerant = MakeLoss(/*stop_on_nan=*/false);
  ASSERT_TRUE(tolerant.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  EXPECT_TRUE(tolerant.Add(0, Stats(nan, 4, 0)).ok());
}

TEST_F(StepLossTest, StopsAtAStepOfWhichNoTargetCounts) {
  StepLoss loss = MakeLoss();
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(0, 0, 0)).ok()) << "another one may count";
  ASSERT_TRUE(loss.Add(1, Stats(0, 0, 0)).ok());
  EXPECT_EQ(loss.EndStep(), absl::FailedPreconditionError(kUncounted));
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 5, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(0, 0, 0)).ok());
  ASSERT_TRUE(loss.Add(1, Stats(2, 1, 1)).ok());
  EXPECT_EQ(Ended(loss).mean(), 2);
  ASSERT_TRUE(loss.BeginStep(StepKind::kEvaluate, 0, {}).ok());
  EXPECT_TRUE(std::isnan(Ended(loss).mean()));
  StepLoss tolerant = MakeLoss(/*stop_on_nan=*/false);
  ASSERT_TRUE(tolerant.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  const LossBits none = Ended(tolerant);
  EXPECT_TRUE(std::isnan(none.mean()) && !std::signbit(none.mean()));
  EXPECT_TRUE(std::isnan(none.accuracy()) && !std::signbit(none.accuracy()));
}

TEST_F(StepLossTest, ASumIsNotDivided) {
  StepLoss::Options options;
  options.loss_scale = 4;
  options.reduction = nn::ops::LossReduction::kSum;
  StepLoss loss = *StepLoss::Create(*kernels_, options);
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(3, 4, 1)).ok());
  ASSERT_TRUE(loss.Add(1, Stats(5, 4, 3)).ok());
  EXPECT_EQ(nn::ScalarsIn(loss.scalars()).InverseDivisor(), 0.25);
  const LossBits bits = Ended(loss);
  EXPECT_EQ(bits.Reduced(options.reduction), 8);
  EXPECT_EQ(bits.Reduced(nn::ops::LossReduction::kMean), 1);
  EXPECT_EQ(bits.accuracy(), 0.5);
  // The sum over no targets is 0.
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 5, RateOf(0.5)).ok());
  ASSERT_TRUE(loss.Add(0, Stats(0, 0, 0)).ok());
  EXPECT_EQ(Ended(loss).Reduced(options.reduction), 0);
}

TEST_F(StepLossTest, OnADeviceAStepOfWhichNoTargetCountsIsSeenLater) {
  auto kernels = nn::CreateQueuedKernels(
      nn::CreateReferenceKernels(),
      std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20), /*seed=*/0);
  StepLoss loss = *StepLoss::Create(*kernels, {});
  ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 4, RateOf(0.5)).ok());
  nn::Tensor stats = *nn::Tensor::Create({nn::ops::kNumLossStats},
                                         nn::DType::kF64, kernels->allocator());
  ASSERT_TRUE(kernels->Fill(0, stats).ok());
  ASSERT_TRUE(loss.Add(0, stats).ok());
  ASSERT_TRUE(loss.EndStep().ok());
  while (kernels->queues()->Progress()) {
  }
  EXPECT_EQ(loss.Take().status(), absl::FailedPreconditionError(kUncounted));
}

TEST_F(StepLossTest, RanksAddUp) {
  auto world = comm::MakeLocalGroup({2});
  std::vector<std::thread> ranks;
  for (int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      const auto kernels = nn::CreateReferenceKernels();
      StepLoss loss = *StepLoss::Create(*kernels, {});
      ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, 0, RateOf(0.5)).ok());
      ASSERT_TRUE(loss.Add(0, Stats(rank + 1, 2, rank)).ok());
      ASSERT_TRUE(world[rank]->RunInline(loss.Sum(), absl::Seconds(60)).ok());
      EXPECT_EQ(nn::ScalarsIn(loss.scalars()).loss_count, 4);
      EXPECT_EQ(Ended(loss).mean(), 0.75);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

// On an asynchronous device, a loss can be read only after its work has run,
// and two steps may be in flight.
TEST_F(StepLossTest, OnADeviceLossesComeLater) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto kernels = nn::CreateQueuedKernels(
        nn::CreateReferenceKernels(),
        std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20), seed);
    StepLoss loss = *StepLoss::Create(*kernels, {});
    for (int step = 3; step < 5; ++step) {
      ASSERT_TRUE(loss.BeginStep(StepKind::kTrain, step, RateOf(0.5)).ok());
      for (int m = 0; m < 2; ++m) {
        nn::Tensor stats = *nn::Tensor::Create(
            {nn::ops::kNumLossStats}, nn::DType::kF64, kernels->allocator());
        const bool bad = step == 4 && m == 1;
        ASSERT_TRUE(kernels->Fill(bad ? NAN : step + m, stats).ok());
        ASSERT_TRUE(loss.Add(m, stats).ok());
      }
      ASSERT_TRUE(loss.EndStep().ok());
    }
    EXPECT_FALSE(loss.Take().value().has_value());
    absl::StatusOr<std::optional<LossBits>> taken = std::nullopt;
    while (taken.ok() && !taken->has_value()) {
      ASSERT_TRUE(kernels->queues()->Progress());
      taken = loss.Take();
    }
    ASSERT_EQ(FromBits((*taken)->sum), 7) << seed;
    while (kernels->queues()->Progress()) {
    }
    ASSERT_EQ(loss.Take().status(), absl::FailedPreconditionError(kNaN));
  }
}

}  // namespace
}  // namespace troupe::actors
