#include "actors/supervision/evaluation_round.h"

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// Returns a part whose loss is `sum` over `count` targets.
Evaluated PartOf(int rank, double sum, double count, std::int64_t step = 100) {
  Evaluated part;
  part.rank = rank;
  part.step = step;
  part.loss = LossBits{Bits(sum), Bits(count), Bits(1)};
  return part;
}

constexpr auto kMean = nn::ops::LossReduction::kMean;

TEST(EvaluationRoundTest, IsTheMeanOverTheTargetsOfAllRanks) {
  EvaluationRound round;
  round.Begin(/*step=*/100, /*ranks=*/2);
  EXPECT_TRUE(round.Add(PartOf(1, /*sum=*/2, /*count=*/1)));
  EXPECT_FALSE(round.complete()) << "rank 0 has not reported";
  EXPECT_TRUE(round.Add(PartOf(0, /*sum=*/10, /*count=*/3)));
  ASSERT_TRUE(round.complete());
  const EvaluationReport report = round.End(kMean);
  EXPECT_EQ(report.step, 100);
  EXPECT_EQ(report.loss, 3);
  EXPECT_EQ(report.accuracy, 0.5);
  EXPECT_EQ(report.count, 4);
  EXPECT_FALSE(round.complete()) << "it has ended";
}

TEST(EvaluationRoundTest, TheOrderOfThePartsDoesNotChangeTheBits) {
  // 1 + 1e16 is rounded: (1 + 1e16) - 1e16 is 0, (1e16 - 1e16) + 1 is 1.
  const double sums[] = {1, 1e16, -1e16};
  for (const int first : {0, 1, 2}) {
    EvaluationRound round;
    round.Begin(100, 3);
    for (const int i : {0, 1, 2}) {
      const int rank = (first + i) % 3;
      EXPECT_TRUE(round.Add(PartOf(rank, sums[rank], 1)));
    }
    EXPECT_EQ(round.End(kMean).loss, 0) << "rank " << first << " was first";
  }
}

TEST(EvaluationRoundTest, OtherStepsAndSecondPartsDoNotCount) {
  EvaluationRound round;
  EXPECT_FALSE(round.Add(PartOf(0, 1, 1, /*step=*/0))) << "none has begun";
  round.Begin(100, 2);
  EXPECT_FALSE(round.Add(PartOf(0, 1, 1, /*step=*/99)));
  EXPECT_TRUE(round.Add(PartOf(0, 1, 1)));
  EXPECT_FALSE(round.Add(PartOf(0, 5, 1)));
  EXPECT_FALSE(round.complete());
  EXPECT_TRUE(round.Add(PartOf(1, 1, 1)));
  EXPECT_EQ(round.End(kMean).loss, 1);
  EXPECT_FALSE(round.Add(PartOf(0, 1, 1))) << "it has ended";
}

}  // namespace
}  // namespace troupe::actors
