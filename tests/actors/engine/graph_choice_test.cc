// GraphChoice: when a step is recorded, and which way of running it is chosen.

#include "actors/engine/recording/graph_choice.h"

#include <optional>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

using Way = GraphChoice::Way;

void RunSteps(GraphChoice& choice, Way way, int steps) {
  for (int i = 0; i < steps; ++i) {
    ASSERT_EQ(choice.Next(), way) << i;
    choice.NoteStep(way);
  }
}

TEST(GraphChoiceTest, WithoutMeasuringRecordsAfterTheWarmUp) {
  GraphChoice choice(/*measure=*/false);
  EXPECT_FALSE(choice.WantsTime(Way::kEager));
  RunSteps(choice, Way::kEager, GraphChoice::kWarmUpSteps);
  RunSteps(choice, Way::kCapture, 1);
  RunSteps(choice, Way::kGraph, 100);
  EXPECT_FALSE(choice.TakeVerdict().has_value());
}

// Runs all timed steps, which take `eager` and `graph` seconds each.
GraphChoice Measured(double eager, double graph) {
  GraphChoice choice(/*measure=*/true);
  EXPECT_FALSE(choice.WantsTime(Way::kEager));
  RunSteps(choice, Way::kEager, GraphChoice::kWarmUpSteps);
  EXPECT_TRUE(choice.WantsTime(Way::kEager));
  RunSteps(choice, Way::kEager, GraphChoice::kTimedSteps);
  RunSteps(choice, Way::kCapture, 1);
  EXPECT_TRUE(choice.WantsTime(Way::kGraph));
  RunSteps(choice, Way::kGraph, GraphChoice::kTimedSteps);
  EXPECT_FALSE(choice.WantsTime(Way::kGraph));
  for (int i = 0; i < GraphChoice::kTimedSteps; ++i) {
    EXPECT_FALSE(choice.TakeVerdict().has_value());
    choice.NoteTime(Way::kEager, i == 0 ? 100 * eager : eager);
    choice.NoteTime(Way::kGraph, i == 1 ? 100 * graph : graph);
  }
  return choice;
}

TEST(GraphChoiceTest, KeepsTheFasterWay) {
  GraphChoice choice = Measured(/*eager=*/0.002, /*graph=*/0.001);
  const std::optional<GraphChoice::Verdict> verdict = choice.TakeVerdict();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->ToString(),
            "steps run as a graph: 1 ms each, 2 ms one op after the other");
  EXPECT_EQ(choice.Next(), Way::kGraph);
  EXPECT_FALSE(choice.TakeVerdict().has_value());
}

TEST(GraphChoiceTest, GoesBackToEagerSteps) {
  GraphChoice choice = Measured(/*eager=*/0.001, /*graph=*/0.0015);
  const std::optional<GraphChoice::Verdict> verdict = choice.TakeVerdict();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->ToString(),
            "steps run one op after the other: 1 ms each, 1.5 ms as a graph");
  EXPECT_EQ(choice.Next(), Way::kEager);
}

TEST(GraphChoiceTest, WhatCannotBeRecordedIsEagerForGood) {
  GraphChoice choice(/*measure=*/false);
  RunSteps(choice, Way::kEager, GraphChoice::kWarmUpSteps);
  choice.Refuse();
  RunSteps(choice, Way::kEager, 10);
}

}  // namespace
}  // namespace troupe::actors
