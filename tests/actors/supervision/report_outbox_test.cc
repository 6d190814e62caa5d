#include "actors/supervision/report_outbox.h"

#include <memory>

#include "gtest/gtest.h"
#include "nn/optim/sgd.h"
#include "tests/actors/supervision/twenty_steps.h"

namespace troupe::actors {
namespace {

ReportOutbox Outbox(bool observed) {
  return ReportOutbox(TwentySteps(/*first_step=*/0),
                      nn::ops::LossReduction::kMean,
                      std::make_unique<nn::Sgd>(nn::SgdOptions()), observed);
}

Progress StepsOf(double loss) {
  Progress progress;
  progress.losses = {LossBits{Bits(8), Bits(1), Bits(0)},
                     LossBits{Bits(loss), Bits(1), Bits(0)}};
  return progress;
}

TEST(ReportOutboxTest, ReleasesOneBatchAtATime) {
  ReportOutbox outbox = Outbox(/*observed=*/true);
  EXPECT_FALSE(outbox.Next().has_value()) << "there are none";
  EXPECT_EQ(outbox.AddSteps(StepsOf(/*loss=*/2), /*seconds=*/1), 2);
  EXPECT_EQ(outbox.Next()->size(), 1u) << "steps are merged";
  outbox.Add(EvaluationReport());
  EXPECT_FALSE(outbox.Next().has_value()) << "the first is not delivered";
  outbox.Delivered();
  EXPECT_EQ(outbox.Next()->size(), 1u);
}

TEST(ReportOutboxTest, TheRestIsThatAfterTheLastBatch) {
  ReportOutbox outbox = Outbox(true);
  outbox.Add(EvaluationReport());
  EXPECT_TRUE(outbox.Next().has_value());
  outbox.Add(CheckpointReport());
  EXPECT_EQ(outbox.TakeRest().size(), 1u);
  EXPECT_TRUE(outbox.TakeRest().empty());
}

TEST(ReportOutboxTest, DropsReportsThatNothingObserves) {
  ReportOutbox outbox = Outbox(/*observed=*/false);
  outbox.AddSteps(StepsOf(2), 1);
  EXPECT_FALSE(outbox.Next().has_value());
  EXPECT_TRUE(outbox.TakeRest().empty());
}

}  // namespace
}  // namespace troupe::actors
