// Tests steps that overlap (PlanOptions::cross_step): a forward begins while
// buckets of the step before are being reduced. Under every seed the bits,
// losses, evaluations and checkpoints are those of the same job without it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/optim/sgd.h"
#include "nn/random/philox.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/faulty_file_system.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 4;

using Edit = std::function<void(JobSpec& spec)>;

JobSpec SpecOf(const Edit& edit, bool cross_step) {
  SmallJobOptions options;
  options.ranks = 2;
  options.steps = kSteps;
  options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.shuffle = true;
  spec.plan.buckets.bucket_bytes = 1;  // one for each parameter
  if (edit) edit(spec);
  spec.plan.cross_step = cross_step;
  return spec;
}

SimulationOptions Seeded(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return options;
}

// Returns the number of updates that ranks make, or gathers that they start,
// after the next step's first forward has begun, over all ranks and steps.
int LateActions(const Recorder& recorder, TraceKind kind) {
  std::map<int, std::int64_t> forward_of;  // latest step of each rank
  int late = 0;
  for (const TraceEvent& event : recorder.events()) {
    if (event.phase != TracePhase::kBegin) continue;
    if (event.kind == TraceKind::kAction &&
        event.action == pipeline::ActionKind::kForward) {
      forward_of[event.rank] = event.step;
    }
    late += event.kind == kind && event.step < forward_of[event.rank];
  }
  return late;
}

// Compares runs with and without overlap. Returns how many runs have
// overlapped: those with late actions of that kind.
int ExpectTheBitsOfStepsApart(const Edit& edit, std::uint64_t seeds,
                              TraceKind kind = TraceKind::kUpdate) {
  const SimulatedRun want = Simulate(SpecOf(edit, false), Seeded(0));
  EXPECT_EQ(want.check, absl::OkStatus());
  int overlapped = 0;
  for (std::uint64_t seed : Seeds(seeds)) {
    SimulatedRun run;
    Simulation simulation(SpecOf(edit, true), Seeded(seed));
    run.result = simulation.Run(&run.reports);
    run.check = simulation.Check();
    run.parameters = simulation.parameters();
    const std::string difference = Difference(run, want);
    EXPECT_EQ(difference, "") << ReplayCommand(seed);
    if (!difference.empty()) break;
    overlapped += LateActions(simulation.recorder(), kind) > 0;
  }
  return overlapped;
}

int SeedsTried(std::uint64_t count) {
  return static_cast<int>(Seeds(count).size());
}

TEST(CrossStepTest, ForwardsBeginBeforeTheLastUpdates) {
  EXPECT_GT(ExpectTheBitsOfStepsApart(nullptr, 400), SeedsTried(400) / 2);
}

TEST(CrossStepTest, StepsApartDoNotOverlap) {
  for (std::uint64_t seed : Seeds(20)) {
    Simulation simulation(SpecOf(nullptr, false), Seeded(seed));
    ASSERT_TRUE(simulation.Run().ok());
    ASSERT_EQ(LateActions(simulation.recorder(), TraceKind::kUpdate), 0)
        << ReplayCommand(seed);
  }
}

TEST(CrossStepTest, StagesThatAccumulate) {
  const auto stages = [](JobSpec& spec) {
    spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
    spec.plan.cuts = {2};
    spec.plan.micro_batch_size = 3;
  };
  EXPECT_GT(ExpectTheBitsOfStepsApart(stages, 300), SeedsTried(300) / 2);
}

// The stage in the middle is a ReLU alone: its forward never waits for updates.
TEST(CrossStepTest, AStageWithoutParameters) {
  const auto stages = [](JobSpec& spec) {
    spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
    spec.plan.cuts = {1, 2};
    spec.plan.micro_batch_size = 4;
  };
  EXPECT_GT(ExpectTheBitsOfStepsApart(stages, 300), SeedsTried(300) / 2);
}

TEST(CrossStepTest, ChunksOfARank) {
  const auto chunks = [](JobSpec& spec) {
    spec.plan.virtual_stages = 2;
    spec.plan.cuts = {2};
  };
  EXPECT_GT(ExpectTheBitsOfStepsApart(chunks, 200), SeedsTried(200) / 2);
}

// Owners of slices gather the updated values beside the next forward, which
// waits for a bucket before it reads it.
TEST(CrossStepTest, OwnersGatherBesideTheNextForward) {
  for (const int pp : {1, 2}) {
    SCOPED_TRACE(absl::StrCat("pp ", pp));
    const auto owners = [&](JobSpec& spec) {
      spec.plan.zero_stage = 1;
      if (pp == 1) return;
      spec.plan.mesh = pipeline::Mesh(/*dp=*/2, pp);
      spec.plan.cuts = {2};
      spec.plan.micro_batch_size = 3;
    };
    EXPECT_GT(ExpectTheBitsOfStepsApart(owners, 100, TraceKind::kCollective),
              SeedsTried(100) / 2);
  }
}

TEST(CrossStepTest, NoOverlapWhereSlicesOfGradientsAreKept) {
  const auto owners = [](JobSpec& spec) { spec.plan.zero_stage = 2; };
  EXPECT_EQ(ExpectTheBitsOfStepsApart(owners, 50), 0);
}

TEST(CrossStepTest, Evaluations) {
  const auto evaluates = [](JobSpec& spec) {
    spec.test = spec.train;
    spec.eval_every = 2;
  };
  EXPECT_GT(ExpectTheBitsOfStepsApart(evaluates, 300), SeedsTried(300) / 4);
}

// An update that needs all buckets runs after the reduction of the last one.
TEST(CrossStepTest, NoOverlapWhereAnUpdateNeedsAllBuckets) {
  const auto skips = [](JobSpec& spec) {
    spec.optimizer = [] {
      nn::SgdOptions sgd;
      sgd.lr = 0.05;
      sgd.momentum = 0.9;
      sgd.common.skip_nonfinite = true;
      return std::make_unique<nn::Sgd>(sgd);
    };
  };
  EXPECT_EQ(ExpectTheBitsOfStepsApart(skips, 100), 0);
}

TEST(CrossStepTest, NoOverlapWhereReductionsAreInline) {
  for (bool fuse_updates : {false, true}) {
    const auto reduces_inline = [&](JobSpec& spec) {
      spec.plan.inline_bytes = 1 << 30;
      spec.plan.fuse_updates = fuse_updates;
    };
    EXPECT_EQ(ExpectTheBitsOfStepsApart(reduces_inline, 100), 0);
  }
}

// A job that saves after each step.
struct CrossStepSaving {
  base::FaultyFileSystem files;
  JobSpec spec;

  CrossStepSaving(const std::string& dir, bool cross_step, std::int64_t every)
      : spec(SpecOf(nullptr, cross_step)) {
    spec.test = spec.train;
    spec.eval_every = 3;
    spec.checkpoint.dir = dir;
    spec.checkpoint.every = every;
    spec.checkpoint.files = &files;
  }
};

// A job is stopped at any message: its checkpoint is of a whole step, and the
// resumed job comes to the same end.
TEST(CrossStepTest, StopsAndGoesOnFromAnywhere) {
  const SimulatedRun want =
      Simulate(CrossStepSaving(FreshFolder("apart"), false, /*every=*/1).spec,
               Seeded(0));
  ASSERT_EQ(want.check, absl::OkStatus());
  int runs = 0, in_between = 0;
  for (std::uint64_t seed : Seeds(200)) {
    CrossStepSaving job(FreshFolder("across"), true, /*every=*/1 + seed % 3);
    nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kTest), {});
    SimulationOptions options = Seeded(seed);
    options.stop_after_messages =
        static_cast<std::int64_t>(draws.Below(want.messages));
    const SimulatedRun stopped = Simulate(job.spec, options);
    ++runs;
    ASSERT_TRUE(stopped.result.ok()) << stopped.result.status();
    if (stopped.result->steps > 0) {
      ASSERT_EQ(Difference(stopped, want), "") << ReplayCommand(seed);
    }
    if (stopped.result->steps == kSteps) continue;
    in_between += stopped.result->steps > 0;
    job.spec.checkpoint.resume = true;
    const SimulatedRun resumed = Simulate(job.spec, Seeded(seed + 1));
    ASSERT_EQ(Difference(resumed, want), "") << ReplayCommand(seed);
    ASSERT_EQ(resumed.result->steps, kSteps) << ReplayCommand(seed);
  }
  EXPECT_GT(in_between, runs / 8);
}

}  // namespace
}  // namespace troupe::actors
