#include "pipeline/schedules/steady_steps.h"

#include "gtest/gtest.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/table/add_gathers.h"

namespace troupe::pipeline {
namespace {

StepCosts Two(StageCosts costs) {
  StepCosts both;
  both.stages.assign(2, costs);
  return both;
}

SteadyStep Steady(const Tables& tables, const StepCosts& costs) {
  const auto steady =
      SimulateSteps(tables, LoopedPlacement(2, 1), costs, Dispatch::kArrival);
  EXPECT_TRUE(steady.ok()) << steady.status();
  return steady.value_or(SteadyStep());
}

TEST(SteadyStepsTest, UpdatesAreAPartOfTheStep) {
  StepCosts costs = Two({1, 1, 1});
  const Tables tables = *OneForwardOneBackward(2, 2);
  EXPECT_EQ(Steady(tables, costs).seconds, 9);
  // Rank 0 ends last; what rank 1 updates is done by then.
  costs.stages[1].update = 1;
  EXPECT_EQ(Steady(tables, costs).seconds, 9);
  costs.stages[0].update = 2;
  const SteadyStep steady = Steady(tables, costs);
  EXPECT_EQ(steady.seconds, 11);
  EXPECT_NEAR(steady.bubble, 1 - (6 + 2 + 6 + 1) / 22.0, 1e-12);
}

// Where rank 1 is the last to end, rank 0 has begun the next step.
TEST(SteadyStepsTest, RanksBeginTheNextStepWhenTheyAreFree) {
  const Tables tables = *ZeroBubbleH1(2, 4);
  StepCosts costs = Two({1, 1, 1});
  costs.stages[1].weights = 2;
  const double alone =
      SimulateStep(tables, LoopedPlacement(2, 1), costs, Dispatch::kArrival)
          ->seconds;
  const SteadyStep steady = Steady(tables, costs);
  EXPECT_LT(steady.seconds, alone);
  // Rank 1 works without a pause.
  EXPECT_EQ(steady.seconds, 4 * 4);
}

// Tables of pp 1 with one micro-batch, whose stage has `buckets` buckets.
Tables Alone(int buckets, const ReductionOptions& options = {}) {
  Tables tables = *GPipe(1, 1);
  tables[0] = AddReductions(tables[0], {buckets}, options);
  return tables;
}

SteadyStep SteadyAlone(const Tables& tables, const StageCosts& stage) {
  StepCosts costs;
  costs.stages = {stage};
  const auto steady =
      SimulateSteps(tables, LoopedPlacement(1, 1), costs, Dispatch::kArrival);
  EXPECT_TRUE(steady.ok()) << steady.status();
  return steady.value_or(SteadyStep());
}

// The forward ends at 1, the backward at 3. Its buckets are ready at 2 and 3.
TEST(SteadyStepsTest, ReductionsOverlapWithTheLastBackward) {
  StageCosts stage = {1, 1, 1};
  stage.reductions = {0.5, 0.5};
  SteadyStep steady = SteadyAlone(Alone(2), stage);
  EXPECT_EQ(steady.step.seconds, 3);
  EXPECT_EQ(steady.step.ranks[0].reduced, 3.5);
  EXPECT_EQ(steady.seconds, 3.5);
  // They follow each other: 2 to 5, then to 5.5; half of the update is left.
  stage.reductions = {3, 0.5};
  stage.update = 1;
  steady = SteadyAlone(Alone(2), stage);
  EXPECT_EQ(steady.step.ranks[0].reduced, 5.5);
  EXPECT_EQ(steady.seconds, 6);
  EXPECT_NEAR(steady.bubble, 1 - 4 / 6.0, 1e-12);
  // Updates that need all gradients follow the last reduction.
  ReductionOptions together;
  together.update_needs_all_buckets = together.reduce_findings = true;
  EXPECT_EQ(SteadyAlone(Alone(2, together), stage).seconds, 6.5);
}

// Gathers follow all reductions on their lane: from 3.5 to 4.5.
TEST(SteadyStepsTest, GathersFollowTheUpdates) {
  StageCosts stage = {1, 1, 1};
  stage.reductions = {0.5, 0.5};
  stage.gathers = {0.75, 0.25};
  ReductionOptions options;
  options.gather_values = true;
  const SteadyStep steady = SteadyAlone(Alone(2, options), stage);
  EXPECT_EQ(steady.step.seconds, 3);
  EXPECT_EQ(steady.step.ranks[0].reduced, 4.5);
  EXPECT_EQ(steady.seconds, 4.5);
  // Both updates precede the gathers if they need all gradients.
  options.update_needs_all_buckets = options.reduce_findings = true;
  EXPECT_EQ(SteadyAlone(Alone(2, options), stage).seconds, 4.5);
}

// The two parts of a forward take 1 each, those of a backward 2. Bucket 1 comes
// first in the forward, last in the backward.
TEST(SteadyStepsTest, ActionsWaitForTheirGathers) {
  StageCosts stage = {2, 2, 2};
  stage.reductions = {0.5, 0.5};
  stage.gathers = {1, 3};
  GatherOptions gathers;
  gathers.chunks = {{{{/*first=*/1, /*last=*/1, /*bytes=*/8},
                      {/*first=*/0, /*last=*/0, /*bytes=*/8}}}};
  const StepTable table = Alone(2)[0];
  // Gathers of bucket 1 end at 3, of bucket 0 at 5, of bucket 1 at 11.
  SteadyStep steady = SteadyAlone({AddGathers(table, {}, gathers)}, stage);
  EXPECT_EQ(steady.step.seconds, 13);
  EXPECT_EQ(steady.step.ranks[0].busy, 6);
  EXPECT_EQ(steady.seconds, 13.5);
  // One ahead of the part that runs: they end at 3, 4 and 7.
  gathers.bytes_ahead = 8;
  steady = SteadyAlone({AddGathers(table, {}, gathers)}, stage);
  EXPECT_EQ(steady.step.seconds, 9);
  // Without times of their own they cost nothing.
  stage.reductions = stage.gathers = {};
  EXPECT_EQ(SteadyAlone({AddGathers(table, {}, gathers)}, stage).seconds, 6);
}

// A forward of 1.5 and a backward of 2.25 in place of 1 and 2; a rank is busy
// for 3.
TEST(SteadyStepsTest, SumsOfLayersMakeActionsLonger) {
  StageCosts stage = {1, 1, 1};
  stage.forward_sums = 0.5;
  stage.backward_sums = 0.25;
  SteadyStep steady = SteadyAlone(Alone(1), stage);
  EXPECT_EQ(steady.seconds, 3.75);
  EXPECT_EQ(steady.step.ranks[0].busy, 3);
  EXPECT_NEAR(steady.bubble, 1 - 3 / 3.75, 1e-12);
  // The half with the gradients of inputs has the sums: in a zero-bubble
  // schedule each micro-batch takes as long.
  const Tables split = *ZeroBubbleH1(1, 2);
  EXPECT_EQ(SteadyAlone(split, stage).seconds, 2 * 3.75);
  EXPECT_EQ(stage.SumsOf(ActionKind::kBackwardWeights), 0);
  EXPECT_EQ(stage.SumsOf(ActionKind::kBackwardInputs), 0.25);
}

TEST(SteadyStepsTest, CostsOfReductionsAreThoseOfTheTable) {
  StepCosts costs;
  costs.stages = {{1, 1, 1}};
  costs.stages[0].reductions = {1};
  const auto error = [&](const Tables& tables) {
    return std::string(
        SimulateSteps(tables, LoopedPlacement(1, 1), costs, Dispatch::kArrival)
            .status()
            .message());
  };
  EXPECT_EQ(error(Alone(2)),
            "schedule: costs of 1 reductions of stage 0 where the table of pp "
            "0 has 2 buckets");
  costs.stages[0].reductions = {1, -1};
  EXPECT_EQ(error(Alone(2)),
            "schedule: a StepCosts has a reduction that must take at least 0");
}

TEST(SteadyStepsTest, UpdatesThatNeedAllGradientsWaitForTheLastRank) {
  StepCosts costs = Two({1, 1, 1});
  costs.stages[1].update = 5;
  Tables tables = *OneForwardOneBackward(2, 2);
  // Rank 1 works without a pause.
  EXPECT_EQ(Steady(tables, costs).seconds, 11);
  ReductionOptions reductions;
  reductions.update_needs_all_buckets = reductions.reduce_findings = true;
  const Placement placement = LoopedPlacement(2, 1);
  for (int rank = 0; rank < 2; ++rank) {
    tables[rank] =
        AddReductions(AddTransfers(tables[rank], EndsAt(placement, rank)),
                      /*buckets=*/1, reductions);
  }
  EXPECT_EQ(Steady(tables, costs).seconds, 13);
}

TEST(SteadyStepsTest, NoiseIsOfActions) {
  StepCosts costs = Two({1, 1, 1});
  costs.factor = [](int stage, const Action& action) {
    return stage == 0 && action.index == 0 ? 2 : 1;
  };
  const auto step =
      SimulateStep(*OneForwardOneBackward(2, 2), LoopedPlacement(2, 1), costs,
                   Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->ranks[0].busy, 3 * 2 + 3);
  EXPECT_EQ(step->ranks[1].busy, 6);
}

TEST(SteadyStepsTest, ErrorsOfASimulation) {
  EXPECT_EQ(SimulateSteps(*GPipe(2, 2), LoopedPlacement(2, 1), StepCosts(),
                          Dispatch::kArrival)
                .status()
                .message(),
            "schedule: costs of 0 stages where the placement has 2");
}

}  // namespace
}  // namespace troupe::pipeline
