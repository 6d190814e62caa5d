#include "actors/step_loss.h"

#include <limits>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"

namespace troupe::actors {
namespace {

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

  nn::CachingAllocator allocator_;
};

TEST_F(StepLossTest, AddsMicroBatchesAndBeginsAnew) {
  StepLoss loss = *StepLoss::Create(allocator_, /*stop_on_nan=*/true);
  loss.BeginStep(StepKind::kTrain, 4);
  ASSERT_TRUE(loss.Add(0, Stats(3, 4, 1)).ok());
  ASSERT_TRUE(loss.Add(1, Stats(5, 4, 3)).ok());
  EXPECT_EQ(loss.bits().mean(), 1);
  EXPECT_EQ(loss.bits().accuracy(), 0.5);
  EXPECT_EQ(loss.scalars().step, 4);
  EXPECT_EQ(loss.scalars().divisor, 8);
  loss.BeginStep(StepKind::kTrain, 5);
  EXPECT_EQ(FromBits(loss.bits().count), 0);
}

TEST_F(StepLossTest, StopsAtALossThatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  StepLoss loss = *StepLoss::Create(allocator_, /*stop_on_nan=*/true);
  loss.BeginStep(StepKind::kTrain, 4);
  EXPECT_EQ(loss.Add(1, Stats(nan, 4, 0)),
            absl::FailedPreconditionError(
                "the loss of step 5, micro-batch 1 is nan; lower optimizer.lr, "
                "or set train.stop_on_nan=false to go on"));
  loss.BeginStep(StepKind::kEvaluate, 0);
  EXPECT_TRUE(loss.Add(0, Stats(nan, 4, 0)).ok());
  StepLoss tolerant = *StepLoss::Create(allocator_, /*stop_on_nan=*/false);
  tolerant.BeginStep(StepKind::kTrain, 4);
  EXPECT_TRUE(tolerant.Add(0, Stats(nan, 4, 0)).ok());
}

TEST_F(StepLossTest, RanksAddUp) {
  auto world = comm::MakeLocalGroup({2});
  std::vector<std::thread> ranks;
  for (int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      StepLoss loss = *StepLoss::Create(allocator_, /*stop_on_nan=*/true);
      loss.BeginStep(StepKind::kTrain, 0);
      ASSERT_TRUE(loss.Add(0, Stats(rank + 1, 2, rank)).ok());
      ASSERT_TRUE(world[rank]->RunInline(loss.Sum(), absl::Seconds(60)).ok());
      EXPECT_EQ(loss.scalars().divisor, 4);
      EXPECT_EQ(loss.bits().mean(), 0.75);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace troupe::actors
