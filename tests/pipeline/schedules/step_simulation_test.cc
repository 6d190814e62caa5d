#include "pipeline/schedules/step_simulation.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {
namespace {

std::string PathOf(const SimulatedStep& step) {
  std::string text;
  for (const SimulatedAction& at : step.critical_path) {
    text += std::to_string(at.rank) + at.action.ToString() + " ";
  }
  return text;
}

TEST(StepSimulationTest, OneForwardOneBackwardByHand) {
  StepCosts costs;
  costs.stages.assign(2, {/*forward=*/1, /*inputs=*/1, /*weights=*/1});
  const auto step =
      SimulateStep(*OneForwardOneBackward(2, 2), LoopedPlacement(2, 1), costs,
                   Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(DrawStep(*step, 9), "rank 0: FF..B0.B1\nrank 1: .FB0FB1..\n");
  EXPECT_EQ(step->seconds, 9);
  EXPECT_EQ(step->ranks[0].busy, 6);
  EXPECT_NEAR(step->bubble, 1.0 / 3, 1e-12);
  EXPECT_EQ(step->ranks[0].activations_max, 2);
  EXPECT_EQ(step->ranks[1].activations_max, 1);
  EXPECT_EQ(PathOf(*step), "0F0 1F0 1B0 1F1 1B1 0B1 ");
}

TEST(StepSimulationTest, IsDrawn) {
  StepCosts costs;
  costs.stages.assign(2, {/*forward=*/2, /*inputs=*/2, /*weights=*/2});
  const auto step = SimulateStep(*ZeroBubbleH1(2, 2), LoopedPlacement(2, 1),
                                 costs, Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->seconds, 14);
  EXPECT_EQ(DrawStep(*step, 14),
            "rank 0: F0F1..I0W0I1W1\n"
            "rank 1: ..F0I0F1I1W0W1\n");
  EXPECT_EQ(DrawStep(*step, 7), "rank 0: FF.IWIW\nrank 1: .FIFIWW\n");
}

TEST(StepSimulationTest, TransfersTakeTimeBetweenRanksAlone) {
  StepCosts costs;
  costs.stages.assign(4, {/*forward=*/1, /*inputs=*/1, /*weights=*/0});
  costs.transfer = 0.5;
  const auto step = SimulateStep(*BreadthFirst(2, 1, 2), VPlacement(2), costs,
                                 Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  // Down and up the V, and back: 8 actions and 4 transfers.
  EXPECT_EQ(step->seconds, 10);
}

TEST(StepSimulationTest, MemoryIsCountedByStage) {
  StepCosts costs;
  costs.stages.assign(2, {1, 1, 1, /*activation=*/3});
  costs.stages[1].activation = 10;
  const auto step =
      SimulateStep(*OneForwardOneBackward(2, 4), LoopedPlacement(2, 1), costs,
                   Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->ranks[0].memory_max, 6);
  EXPECT_EQ(step->memory_max(), 10);
  EXPECT_EQ(step->activations_max(), 2);
}

TEST(StepSimulationTest, ASmallerLastMicroBatchCostsLess) {
  StepCosts costs;
  costs.stages.assign(2, {1, 1, 1, /*activation=*/4});
  costs.last_micro_batch = 0.5;
  const auto step = SimulateStep(*GPipe(2, 2), LoopedPlacement(2, 1), costs,
                                 Dispatch::kStrict);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->ranks[0].busy, 3 + 1.5);
  EXPECT_EQ(step->memory_max(), 6);
  // F0 F1 wait; then B0 of the other stage, and both backwards.
  EXPECT_EQ(PathOf(*step), "0F0 1F0 1F1 1B0 0B0 0B1 ");
  EXPECT_EQ(step->seconds, 1 + 1 + 0.5 + 2 + 2 + 1);
}

// A stage whose input is late runs another action meanwhile.
TEST(StepSimulationTest, ArrivalOvertakesWhatWaits) {
  StepCosts costs;
  costs.stages.assign(2, {1, 1, 1});
  costs.stages[0].forward = costs.stages[1].weights = 3;
  const Tables tables = *ZeroBubbleH1(2, 6);
  const auto length = [&](Dispatch dispatch) {
    return SimulateStep(tables, LoopedPlacement(2, 1), costs, dispatch)
        ->seconds;
  };
  EXPECT_LT(length(Dispatch::kArrival), length(Dispatch::kStrict));
}

// Tables of a plan have transfers, reductions and updates, too.
TEST(StepSimulationTest, WholeTables) {
  for (const bool all_buckets : {false, true}) {
    Tables tables = *OneForwardOneBackward(3, 4);
    ReductionOptions reductions;
    reductions.update_needs_all_buckets = all_buckets;
    reductions.reduce_findings = all_buckets;
    const Placement placement = LoopedPlacement(3, 1);
    StepCosts costs;
    costs.stages.assign(3, {});
    const double alone =
        SimulateStep(tables, placement, costs, Dispatch::kArrival)->seconds;
    for (int rank = 0; rank < 3; ++rank) {
      tables[rank] =
          AddReductions(AddTransfers(tables[rank], EndsAt(placement, rank)),
                        /*buckets=*/2, reductions);
    }
    const auto step =
        SimulateStep(tables, placement, costs, Dispatch::kArrival);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->seconds, alone);
  }
}

TEST(StepSimulationTest, TablesThatDoNotFitTogether) {
  StepCosts costs;
  costs.stages.assign(2, {});
  const auto wrong = [&](const char* first, const char* second) {
    return std::string(SimulateStep({*ParseTable(first), *ParseTable(second)},
                                    LoopedPlacement(2, 1), costs,
                                    Dispatch::kStrict)
                           .status()
                           .message());
  };
  EXPECT_EQ(wrong("F0 F1 B0 B1", "F0 B0"),
            "schedule: rank 0: SA1 is received by nobody; add the receive to "
            "the other rank");
  EXPECT_EQ(wrong("F0 B0 F1 B1", "F0 F1 B0 B1"),
            "schedule: the tables do not end: rank 0 has left RG0 B0 F1 SA1 "
            "RG1 B1; rank 1 has left RA1 F1 B0 SG0 B1 SG1; move or add what "
            "they wait "
            "for")
      << "a deadlock in strict order";
  EXPECT_EQ(
      wrong("1F0 1B0", "F0 B0"),
      "schedule: the table of pp 0 has 2 chunks where the placement has 1");
  costs.stages[0].forward = -1;
  EXPECT_EQ(wrong("F0 B0", "F0 B0"),
            "schedule: a StepCosts has a cost that must be at least 0");
  costs.stages.pop_back();
  EXPECT_EQ(wrong("F0 B0", "F0 B0"),
            "schedule: costs of 1 stages where the placement has 2");
}

// The size that the header names: 64 ranks, 512 micro-batches.
TEST(StepSimulationTest, LargePipelines) {
  const Tables tables = *InterleavedOneForwardOneBackward(64, 512, 2);
  StepCosts costs;
  costs.stages.assign(128, {});
  const auto step =
      SimulateStep(tables, LoopedPlacement(64, 2), costs, Dispatch::kArrival);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_NEAR(step->seconds, 2 * 512 * 3 + 63 * 3, 1e-6);
}

}  // namespace
}  // namespace troupe::pipeline
