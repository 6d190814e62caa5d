// The causes of waits, found in traces whose numbers are worked out by hand.

#include "tools/report/step_timeline.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tools/report/made_run.h"
#include "tools/report/planned_step.h"

namespace troupe::tools {
namespace {

// "F 0-20, gradient 20-50"
std::string SpansOf(const MadeRun& run, int rank) {
  static const char* const kNames[kSpanKinds] = {
      "F",          "B",        "UP",    "transfer", "graph", "exposed",
      "activation", "gradient", "peers", "data",     "end",   "other"};
  const RunTimeline timeline(run.trace, run.shape);
  std::string text;
  const StepTimeline step = timeline.Step(7);
  for (const Span& span : step.ranks[rank].spans) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    kNames[static_cast<int>(span.kind)], " ", span.begin, "-",
                    span.end);
  }
  return text;
}

TEST(StepTimelineTest, AStageWaitsForItsNeighboursAndHidesWhatItCan) {
  const TwoStages run;
  // The loss is summed from 56 to 60, under backwards of both ranks. Until
  // then, rank 0 has waited for a gradient, not for the sum.
  EXPECT_EQ(SpansOf(run, 0),
            "F 0-20, gradient 20-50, B 50-70, gradient 70-80, B 80-100, "
            "exposed 100-104, other 104-106, UP 106-110");
  EXPECT_EQ(SpansOf(run, 1),
            "activation 0-12, F 12-22, B 22-46, F 46-56, B 56-78, "
            "exposed 78-84, other 84-104, UP 104-108, end 108-110");
  const RunTimeline timeline(run.trace, run.shape);
  EXPECT_EQ(timeline.steps(), std::vector<std::int64_t>({7}));
  const StepTimeline step = timeline.Step(7);
  EXPECT_EQ(step.length(), 110);
  EXPECT_DOUBLE_EQ(step.Share(SpanKind::kExposed), 10.0 / 220);
  EXPECT_DOUBLE_EQ(step.Share(SpanKind::kWaitGradient), 40.0 / 220);
  EXPECT_DOUBLE_EQ(step.Share(SpanKind::kWaitActivation), 12.0 / 220);
}

TEST(StepTimelineTest, UntilAllHaveLaunchedACollectiveNothingIsOnTheWire) {
  const TwoReplicas run;
  EXPECT_EQ(SpansOf(run, 0),
            "F 0-10, B 10-40, peers 40-42, exposed 42-52, UP 52-55, end 55-56");
  EXPECT_EQ(SpansOf(run, 1), "F 0-14, B 14-48, exposed 48-52, UP 52-56");
}

TEST(StepTimelineTest, WhatTheComputeStrandReducesItselfIsNeverHidden) {
  MadeRun run(/*dp=*/2, /*pp=*/1);
  run.plan.ranks[0].reduce_inline = true;
  run.Add(0, "F0", 0, 10).Add(0, "B0", 10, 32).AddComm(0, "RU0", 30, 40);
  run.Add(0, "B1", 40, 42);
  run.Add(1, "F0", 0, 20).Add(1, "B0", 20, 34).AddComm(1, "RU0", 34, 40);
  run.Add(1, "B1", 40, 42);
  EXPECT_EQ(SpansOf(run, 0),
            "F 0-10, B 10-30, peers 30-34, exposed 34-40, B 40-42");
  EXPECT_EQ(SpansOf(run, 1), "F 0-20, B 20-34, exposed 34-40, B 40-42");
}

// Two stages share "wte.weight": bucket 1 of the first, bucket 0 of the second.
pipeline::Plan TiedStages() {
  pipeline::Plan plan = PlanOf(/*dp=*/1, /*pp=*/2);
  plan.stages[0].parameters = {"wte.weight", "h0.weight"};
  plan.stages[0].buckets = {{1}, {0}};
  plan.stages[1].parameters = {"wte.weight"};
  plan.stages[1].buckets = {{0}};
  return plan;
}

TEST(StepTimelineTest, ASumOverStagesWaitsForTheStageThatComesLast) {
  MadeRun run(TiedStages());
  run.Add(0, "F0", 0, 10).Add(0, "B0", 10, 20).AddComm(0, "TR1", 20, 60);
  run.Add(0, "UP1", 60, 62);
  run.Add(1, "F0", 0, 30).Add(1, "B0", 30, 50).AddComm(1, "TR0", 50, 60);
  run.Add(1, "UP0", 60, 62);
  EXPECT_EQ(SpansOf(run, 0),
            "F 0-10, B 10-20, peers 20-50, exposed 50-60, UP 60-62");
  EXPECT_EQ(SpansOf(run, 1), "F 0-30, B 30-50, exposed 50-60, UP 60-62");

  const Bar sum = run.trace.bars[2];
  const std::vector<Bar> parts = run.shape.PartsOf(sum);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].rank, 0);
  EXPECT_EQ(parts[0].index, 1);
  EXPECT_EQ(parts[1].rank, 1);
  EXPECT_EQ(parts[1].index, 0);
  Bar unknown = sum;
  unknown.index = 5;
  EXPECT_EQ(run.shape.PartsOf(unknown).size(), 1u);
}

TEST(StepTimelineTest, AnUpdateInTheMiddleOfABackwardIsAnUpdate) {
  MadeRun run(/*dp=*/1, /*pp=*/1);
  run.Add(0, "B0", 0, 30).Add(0, "UP1", 10, 14).Add(0, "UP0", 30, 31);
  EXPECT_EQ(SpansOf(run, 0), "B 0-10, UP 10-14, B 14-30, UP 30-31");
}

TEST(StepTimelineTest, AFirstStageWaitsForItsLoader) {
  MadeRun run(/*dp=*/1, /*pp=*/1);
  run.Add(0, "F0", 0, 5).Add(0, "F1", 25, 30);
  EXPECT_EQ(SpansOf(run, 0), "F 0-5, other 5-25, F 25-30");
  run.Add(0, "F0", 2, 24, BarTrack::kLoad);
  EXPECT_EQ(SpansOf(run, 0), "F 0-5, data 5-25, F 25-30");
}

TEST(StepTimelineTest, TheNextStepsForwardsTakeTimeOfThisOne) {
  MadeRun run(/*dp=*/2, /*pp=*/1);
  for (const int rank : {0, 1}) {
    run.Add(rank, "F0", 0, 10).Add(rank, "B0", 10, 20);
    run.AddComm(rank, "AR0", 20, 30).Add(rank, "UP0", 30, 31);
  }
  run.Add(0, "F0", 22, 28);
  run.trace.bars.back().step = 8;
  EXPECT_EQ(SpansOf(run, 0),
            "F 0-10, B 10-20, exposed 20-22, F 22-28, exposed 28-30, UP 30-31");
  EXPECT_EQ(SpansOf(run, 1), "F 0-10, B 10-20, exposed 20-30, UP 30-31");
  const RunTimeline timeline(run.trace, run.shape);
  const StepTimeline step = timeline.Step(7);
  EXPECT_EQ(step.ranks[0].compute.size(), 3u);
  ASSERT_EQ(step.ranks[0].others.size(), 1u);
  EXPECT_EQ(step.ranks[0].others[0].step, 8);
}

TEST(PlannedStepTest, RunsTheTablesWithTheTimesThatWereMeasured) {
  const TwoStages run;
  const pipeline::StepCosts costs = MeasuredCosts(run.trace, run.shape);
  ASSERT_EQ(costs.stages.size(), 2u);
  EXPECT_EQ(costs.stages[0].forward, 10);
  EXPECT_EQ(costs.stages[0].inputs, 10);
  EXPECT_EQ(costs.stages[1].weights, 12);  // half of the upper median, 24
  pipeline::StepCosts estimate;
  estimate.stages.resize(2);
  const auto planned = PlanSteps(run.plan, estimate, run.trace, run.shape);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->size(), 2u);
  // F0 F1 on rank 0 until 20; F0 B0 F1 B1 on rank 1 from 10 to 78; B1 until 98.
  EXPECT_EQ((*planned)[0].costs, "as measured");
  EXPECT_DOUBLE_EQ((*planned)[0].simulated.seconds, 98);
  EXPECT_DOUBLE_EQ((*planned)[0].simulated.bubble, 1 - 128.0 / 196);
  // 9 units of a stage's third, each a sixth of 64.
  EXPECT_EQ((*planned)[1].costs, "by arithmetic");
  EXPECT_DOUBLE_EQ((*planned)[1].simulated.seconds, 9 * 64.0 / 6);
}

TEST(PlannedStepTest, OfAStageWithoutTimesNothingIsMeasured) {
  MadeRun run(/*dp=*/1, /*pp=*/2);
  run.Add(0, "F0", 0, 1).Add(0, "B0", 1, 3);
  EXPECT_TRUE(MeasuredCosts(run.trace, run.shape).stages.empty());
}

}  // namespace
}  // namespace troupe::tools
