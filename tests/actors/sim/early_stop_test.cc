// Tests jobs that stop early, under the seeded scheduler: all ranks end at the
// same step, whatever the order of messages, also if the job was stopped and
// resumed on the way.

#include <string>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/sim/simulation.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kStopSteps = 40, kEvery = 2, kPatience = 3;
// Step of the early stop: after the first evaluation, and kPatience more
// without an improvement.
constexpr std::int64_t kEnd = kEvery * (1 + kPatience);

// Returns a job in which no evaluation after the first is an improvement.
JobSpec ConvergingJob(int ranks) {
  JobSpec spec = SmallJob({ranks, Numbers::kFloat, kStopSteps});
  spec.test = spec.train;
  spec.eval_every = kEvery;
  spec.early_stop_patience = kPatience;
  spec.early_stop_min_delta = 1e9;
  return spec;
}

// Returns the fault of a run that must have converged; empty: none.
std::string Verdict(const SimulatedRun& run, const SimulatedRun& want) {
  const std::string difference = Difference(run, want);
  if (!difference.empty()) return difference;
  if (run.result->steps != kEnd) {
    return absl::StrCat("ended after step ", run.result->steps);
  }
  if (run.result->stopped) return "counts as stopped";
  return run.result->converged.empty() ? "does not say that it converged" : "";
}

class EarlyStopTest : public testing::TestWithParam<int> {};

TEST_P(EarlyStopTest, AllRanksEndAtTheSameStep) {
  const JobSpec spec = ConvergingJob(GetParam());
  JobSpec plain = spec;
  plain.early_stop_patience = 0;
  plain.steps = kEnd;
  const SimulatedRun want = Simulate(plain, {});
  ASSERT_EQ(want.result->evaluation.step, kEnd);
  for (std::uint64_t seed : Seeds(200)) {
    ASSERT_EQ(Verdict(Simulate(spec, seed), want), "") << ReplayCommand(seed);
  }
}

// The job is stopped at any message: before, in and after evaluations.
TEST_P(EarlyStopTest, AResumedRunEndsThereToo) {
  JobSpec spec = ConvergingJob(GetParam());
  const std::string name = absl::StrCat("resumed", GetParam());
  const std::string straight_dir = FreshFolder(name + "_straight");
  spec.checkpoint.dir = straight_dir;
  const SimulatedRun straight = Simulate(spec, {});
  ASSERT_EQ(straight.result->steps, kEnd);
  int interrupted = 0;
  for (std::uint64_t seed : Seeds(60)) {
    const std::string dir = absl::StrCat(name, "_", seed);
    const ResumedRun run = StopAndResume(spec, dir, seed);
    ASSERT_TRUE(run.status().ok()) << run.status() << ReplayCommand(seed);
    interrupted += run.first.result->stopped;
    const JobResult& ended = *run.second.result;
    ASSERT_EQ(ended.steps, kEnd)
        << "stopped after step " << run.first.result->steps
        << ReplayCommand(seed);
    ASSERT_FALSE(ended.stopped) << ReplayCommand(seed);
    ASSERT_EQ(ended.converged, straight.result->converged)
        << ReplayCommand(seed);
    const std::string file = "/step-00000008/model.safetensors";
    ASSERT_EQ(FileBytes(run.dir + file), FileBytes(straight_dir + file))
        << ReplayCommand(seed);
  }
  EXPECT_GT(interrupted, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EarlyStopTest, testing::Values(1, 2, 4),
                         testing::PrintToStringParamName());

// The best checkpoint is kept, whatever follows it.
TEST(BestCheckpointTest, StaysWhateverCameAfterIt) {
  for (std::uint64_t seed : Seeds(40)) {
    JobSpec spec = SmallJob({/*ranks=*/2, Numbers::kFloat, /*steps=*/12});
    spec.test = spec.train;
    spec.eval_every = 2;
    spec.checkpoint.dir = FreshFolder(absl::StrCat("best", seed));
    spec.checkpoint.every = 1;
    spec.checkpoint.keep = 1;
    spec.checkpoint.keep_best = true;
    SimulationOptions options;
    options.seed = seed;
    const SimulatedRun run = Simulate(spec, options);
    ASSERT_TRUE(run.result.ok()) << run.result.status();
    const EvaluationReport* best = nullptr;
    for (const EvaluationReport& report : run.reports.evaluations) {
      if (best == nullptr || report.loss < best->loss) best = &report;
    }
    EXPECT_EQ(run.result->best.step, best->step);
    base::PosixFileSystem files;
    ASSERT_EQ(FindBestCheckpoint(files, spec.checkpoint.dir), best->step)
        << ReplayCommand(seed);
    const auto saved = Checkpoint::Open(files, spec.checkpoint.dir + "/best/");
    ASSERT_TRUE(saved.ok()) << saved.status() << ReplayCommand(seed);
    EXPECT_EQ(saved->state().step, best->step);
    EXPECT_EQ(saved->state().evaluations->best, best->loss);
    EXPECT_EQ(ListCheckpoints(files, spec.checkpoint.dir)->size(),
              best->step == 12 ? 1u : 2u);
  }
}

}  // namespace
}  // namespace troupe::actors
