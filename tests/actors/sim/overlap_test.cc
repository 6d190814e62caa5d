// Tests that backward and reductions overlap from the first step on. The record
// of a simulated job shows it on any machine, however many cores are free.

#include <cstdint>
#include <map>

#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr int kOverlapRanks = 2;

// Events of one rank in one step.
struct Step {
  int buckets = 0;
  int launched_during_backward = 0, reduced_during_backward = 0;
  bool in_backward = false;
};

// Returns the events of step `step`, by rank. Each rank has one micro-batch,
// and so one backward.
std::map<int, Step> StepsOf(const Recorder& recorder, std::int64_t step) {
  std::map<int, Step> steps;
  for (const TraceEvent& event : recorder.events()) {
    if (event.step != step) continue;
    Step& of_rank = steps[event.rank];
    const bool begins = event.phase == TracePhase::kBegin;
    if (event.kind == TraceKind::kAction &&
        event.action == pipeline::ActionKind::kBackward) {
      of_rank.in_backward = begins;
    }
    if (event.kind != TraceKind::kCollective || event.bucket < 0) continue;
    if (begins) {
      ++of_rank.buckets;
      of_rank.launched_during_backward += of_rank.in_backward;
    } else {
      of_rank.reduced_during_backward += of_rank.in_backward;
    }
  }
  return steps;
}

TEST(OverlapTest, BucketsAreLaunchedAndReducedDuringTheFirstBackward) {
  JobSpec spec = SmallJob({kOverlapRanks, Numbers::kFloat, /*steps=*/1});
  spec.plan.micro_batch_size = kSmallJobBatch / kOverlapRanks;
  spec.plan.buckets.bucket_bytes = 1;  // one for each parameter
  int runs = 0, reduced_in_time = 0;
  for (std::uint64_t seed : Seeds(200)) {
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(spec, options);
    ASSERT_TRUE(simulation.Run().ok());
    for (const auto& [rank, step] : StepsOf(simulation.recorder(), 0)) {
      ASSERT_EQ(step.buckets, 6);
      // All buckets but those whose gradients are the backward's last.
      ASSERT_GE(step.launched_during_backward, 4) << ReplayCommand(seed);
      ++runs;
      reduced_in_time += step.reduced_during_backward > 0;
    }
  }
  // A peer that is far behind delays every reduction of a run.
  EXPECT_GT(reduced_in_time, runs / 2);
}

// The check fails if reductions do not overlap.
TEST(OverlapTest, ReductionsThatNeedTheWholeBackwardDoNotOverlap) {
  JobSpec spec = SmallJob({kOverlapRanks, Numbers::kFloat, /*steps=*/1});
  spec.plan.micro_batch_size = kSmallJobBatch / kOverlapRanks;
  SimulationOptions options;
  options.edit_table = [](int, pipeline::StepTable& table) {
    const int backward = table.Find(pipeline::ActionKind::kBackward, 0);
    for (pipeline::Action& action : table.actions) {
      if (action.kind != pipeline::ActionKind::kReduceBucket) continue;
      action.needs.push_back({pipeline::SignalKind::kDone, backward});
    }
  };
  Simulation simulation(spec, options);
  ASSERT_EQ(simulation.Run().status(), absl::OkStatus());
  for (const auto& [rank, step] : StepsOf(simulation.recorder(), 0)) {
    EXPECT_EQ(step.launched_during_backward, 0) << rank;
  }
}

}  // namespace
}  // namespace troupe::actors
