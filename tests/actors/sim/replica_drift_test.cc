// Tests that a replica that drifts from the others ends the job at the next
// checkpoint, under any seed, and that no checkpoint has its values.

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/sim/simulation.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Returns a job of three replicas with momentum, that saves every second step.
JobSpec SavingJob(const std::string& dir) {
  SmallJobOptions options;
  options.ranks = 3;
  options.steps = 6;
  options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.checkpoint.dir = dir;
  spec.checkpoint.every = 2;
  return spec;
}

// Returns options that change one element of rank 1 after step 3: of its
// parameters, or of its momentum.
SimulationOptions Drifting(std::uint64_t seed, bool of_optimizer) {
  SimulationOptions options;
  options.seed = seed;
  options.after_step = [of_optimizer](int rank, std::int64_t step,
                                      const nn::ParameterArena& arena) {
    if (rank != 1 || step != 2) return;
    const nn::Tensor& changed =
        of_optimizer ? arena.states()[0].second : arena.values();
    changed.data<float>()[arena.range(1).begin] += 1;
  };
  return options;
}

class ReplicaDriftTest : public testing::TestWithParam<bool> {};

TEST_P(ReplicaDriftTest, IsNamedAtTheNextCheckpoint) {
  for (std::uint64_t seed : Seeds(60)) {
    const std::string dir =
        FreshFolder(absl::StrCat("drift", GetParam(), "_", seed));
    const SimulatedRun run =
        Simulate(SavingJob(dir), Drifting(seed, GetParam()));
    const std::string message(run.result.status().message());
    ASSERT_TRUE(absl::StrContains(
        message,
        "after step 4 rank 1 has other parameters or optimizer states "
        "than ranks 0 and 2, first in bucket "))
        << message << ReplayCommand(seed);
    base::PosixFileSystem files;
    const auto paths = ListCheckpoints(files, dir);
    ASSERT_TRUE(paths.ok()) << paths.status();
    ASSERT_EQ(paths->size(), 1u) << ReplayCommand(seed);
    EXPECT_TRUE(absl::EndsWith(paths->back(), "step-00000002"));
  }
}

INSTANTIATE_TEST_SUITE_P(OfOptimizer, ReplicaDriftTest, testing::Bool(),
                         testing::PrintToStringParamName());

TEST(UncomparedReplicasTest, MayDrift) {
  JobSpec spec = SavingJob(FreshFolder("unseen"));
  spec.checkpoint.compare_replicas = false;
  const SimulatedRun run =
      Simulate(spec, Drifting(/*seed=*/0, /*of_optimizer=*/false));
  ASSERT_TRUE(run.result.ok()) << run.result.status();
  EXPECT_EQ(run.reports.checkpoints.size(), 3u);
}

}  // namespace
}  // namespace troupe::actors
