#include "pipeline/schedules/schedule_search.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "pipeline/schedules/exact_schedule.h"
#include "pipeline/schedules/list_schedule.h"

namespace troupe::pipeline {
namespace {

// A model of twelve units of work, cut evenly: a part of it in each stage.
ScheduleSearchOptions Options(int pp, int micro_batches) {
  ScheduleSearchOptions options;
  options.pp = pp;
  options.micro_batches = micro_batches;
  options.costs_of = [](int stages) {
    const double part = 12.0 / stages;
    StepCosts costs;
    costs.stages.assign(stages, {part, part, part, part});
    return costs;
  };
  options.exact_limit = 0;
  return options;
}

TEST(ScheduleSearchTest, IsNeverLongerThanTheNamedOnesWithinTheLimit) {
  for (const int pp : {2, 3, 4}) {
    for (const int m : {pp, 2 * pp, 3 * pp}) {
      for (const double limit : {12.0, 24.0, 1e9}) {
        ScheduleSearchOptions options = Options(pp, m);
        options.memory_limit = limit;
        const auto found = SearchSchedule(options);
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_LE(found->step.memory_max(), limit);
        for (const NamedSchedule& named : NamedSchedules()) {
          const int chunks = named.chunks > 0 ? named.chunks : 2;
          const auto tables = named.tables(pp, m, chunks);
          if (!tables.ok()) continue;
          const auto step =
              SimulateStep(*tables, PlacementFor(named, pp, chunks),
                           options.costs_of(pp * chunks), Dispatch::kArrival);
          ASSERT_TRUE(step.ok()) << step.status();
          if (step->memory_max() > limit) continue;
          EXPECT_LE(found->step.seconds, step->seconds + 1e-9)
              << named.name << " pp " << pp << " m " << m;
        }
      }
    }
  }
}

TEST(ScheduleSearchTest, LessMemoryIsNeverFaster) {
  double last = 0;
  for (const double limit : {1e9, 20.0, 16.0, 14.0, 12.0}) {
    ScheduleSearchOptions options = Options(4, 8);
    options.memory_limit = limit;
    const auto found = SearchSchedule(options);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_GE(found->step.seconds, last - 1e-9) << limit;
    last = found->step.seconds;
  }
}

// Halves that read from memory what a whole backward has in the cache.
TEST(ScheduleSearchTest, WholeBackwardsWhereHalvesTakeLonger) {
  for (const double whole : {1.6, 2.0}) {
    ScheduleSearchOptions options = Options(2, 8);
    options.chunks = {1};
    options.costs_of = [&](int stages) {
      StepCosts costs;
      costs.stages.assign(stages, {1, 1, 1, 1, /*backward=*/whole});
      return costs;
    };
    const auto found = SearchSchedule(options);
    ASSERT_TRUE(found.ok()) << found.status();
    for (const NamedSchedule& named : NamedSchedules()) {
      if (named.chunks != 1) continue;
      const auto step =
          SimulateStep(*named.tables(2, 8, 1), LoopedPlacement(2, 1),
                       options.costs_of(2), Dispatch::kArrival);
      EXPECT_LE(found->step.seconds, step->seconds + 1e-9) << named.name;
    }
    // Mostly whole ones: a table of halves alone takes 8 * 3 at least.
    if (whole < 2) {
      EXPECT_LT(found->step.seconds, 8 * 3);
    }
  }
}

TEST(ScheduleSearchTest, CountsWhatRanksHold) {
  ScheduleSearchOptions options = Options(2, 4);
  options.chunks = {1};
  options.costs_of = [](int stages) {
    StepCosts costs;
    costs.stages.assign(stages, {1, 1, 1, 1});
    costs.stages[1].held = 10;
    return costs;
  };
  options.total_limit = 11;
  const auto found = SearchSchedule(options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->step.ranks[1].memory_max, 1);
  options.total_limit = 10;
  EXPECT_EQ(SearchSchedule(options).status().message(),
            "schedule: no order of 4 micro-batches keeps the activations of a "
            "rank within inf, and all that it holds within 10; raise the "
            "limit, or make micro-batches smaller");
}

TEST(ScheduleSearchTest, WhatFitsNowhereIsToldSo) {
  ScheduleSearchOptions options = Options(2, 4);
  options.memory_limit = 1;
  EXPECT_EQ(SearchSchedule(options).status(),
            absl::ResourceExhaustedError(
                "schedule: no order of 4 micro-batches keeps the activations "
                "of a rank within 1; raise the limit, or make micro-batches "
                "smaller"));
  options.costs_of = nullptr;
  EXPECT_EQ(SearchSchedule(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ScheduleSearchTest, SmallOnesAreTheShortest) {
  ScheduleSearchOptions options = Options(2, 2);
  options.chunks = {1};
  options.exact_limit = 2'000'000;
  const auto found = SearchSchedule(options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->is_shortest);
  // Two ranks of 6, one of which begins and ends a stage later: by hand,
  //   F0 F1 .  I0 W0 I1 W1   or the like; 7 parts of 6.
  EXPECT_EQ(found->step.seconds, 7 * 6);
}

// Looking at all orders finds nothing that is longer than playing, and what it
// finds is as long as it says.
TEST(ExactScheduleTest, IsNoLongerThanPlaying) {
  for (const int rule : {0, 1, 2}) {
    ListScheduleOptions options;
    options.placement = rule == 2 ? VPlacement(2) : LoopedPlacement(2, 1);
    options.micro_batches = rule == 2 ? 1 : 3;
    options.costs.stages.assign(options.placement.size(), {1, 2, 0.5, 1});
    options.costs.stages[0].forward = rule;
    options.costs.transfer = 0.25 * rule;
    const auto played = ListSchedule(options);
    ASSERT_TRUE(played.ok()) << played.status();
    const double length = SimulateStep(*played, options.placement,
                                       options.costs, Dispatch::kStrict)
                              ->seconds;
    const ExactSchedule exact =
        FindExactSchedule(options, length + 1e-6, 3'000'000);
    EXPECT_TRUE(exact.looked_at_all);
    ASSERT_TRUE(exact.tables.has_value());
    for (const StepTable& table : *exact.tables) {
      EXPECT_EQ(Validate(table), absl::OkStatus()) << table.ToString();
    }
    EXPECT_LE(SimulateStep(*exact.tables, options.placement, options.costs,
                           Dispatch::kStrict)
                  ->seconds,
              length + 1e-9);
  }
}

TEST(ListScheduleTest, TheOldestMicroBatchAlwaysFits) {
  // In a V with room for one micro-batch, which has two activations here.
  for (const int pp : {1, 2, 3, 5}) {
    for (const bool weights_off : {false, true}) {
      ListScheduleOptions options;
      options.placement = VPlacement(pp);
      options.micro_batches = 6;
      options.costs.stages.assign(2 * pp, StageCosts());
      options.memory_limit = 2;
      options.puts_weights_off = weights_off;
      options.forwards_first = true;
      const auto tables = ListSchedule(options);
      ASSERT_TRUE(tables.ok()) << tables.status();
      for (const StepTable& table : *tables) {
        EXPECT_EQ(Validate(table), absl::OkStatus()) << table.ToString();
        EXPECT_EQ(table.micro_batches(), 6);
      }
    }
  }
}

TEST(ListScheduleTest, LessThanOneMicroBatchIsNothing) {
  ListScheduleOptions options;
  options.placement = VPlacement(2);
  options.costs.stages.assign(4, StageCosts());
  options.memory_limit = 1.5;
  EXPECT_EQ(ListSchedule(options).status(),
            absl::ResourceExhaustedError(
                "schedule: a micro-batch takes 2 of a rank's memory for "
                "activations, and the limit is 1.5; raise it, or make "
                "micro-batches smaller"));
}

}  // namespace
}  // namespace troupe::pipeline
