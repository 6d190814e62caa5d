// Tests checkpoints of a pipeline, whose stages write their own shards, in any
// order, on a disk that fails or in a process that crashes at any moment: every
// folder with a checkpoint's name can be read, to the last tensor.

#include <errno.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

constexpr int kStages = 3;
constexpr std::int64_t kSavedSteps = 3;

JobSpec Pipelined(const std::string& dir, base::FileSystem* files) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, kSavedSteps});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, kStages);
  spec.plan.cuts = {2, 4};
  spec.checkpoint.dir = dir;
  spec.checkpoint.every = 1;
  spec.checkpoint.keep = 2;
  spec.checkpoint.files = files;
  return spec;
}

struct Simulated {
  absl::StatusOr<JobResult> result = absl::UnknownError("not run");
  Reports reports;
};

Simulated SimulateOnDisk(const JobSpec& spec, std::uint64_t seed) {
  Simulated run;
  SimulationOptions options;
  options.seed = seed;
  Simulation simulation(spec, options);
  run.result = simulation.Run(&run.reports);
  return run;
}

// Returns the bytes of all tensor files of a checkpoint, by name.
std::map<std::string, std::string> TensorFiles(const std::string& path) {
  std::map<std::string, std::string> bytes;
  for (int shard = 0; shard < kStages; ++shard) {
    for (const char* what : {"model", "optimizer"}) {
      const std::string name = ShardName(what, shard, kStages);
      bytes[name] = FileBytes(absl::StrCat(path, "/", name));
    }
  }
  return bytes;
}

class CheckpointShardsTest : public testing::Test {
 protected:
  // Saves the files of a run without faults, by step.
  void SetUp() override {
    const std::string dir = FreshFolder("reference");
    JobSpec spec = Pipelined(dir, &counting_);
    spec.checkpoint.keep = 0;
    ASSERT_TRUE(SimulateOnDisk(spec, /*seed=*/0).result.ok());
    for (std::int64_t step = 1; step <= kSavedSteps; ++step) {
      reference_[step] =
          TensorFiles(absl::StrCat(dir, "/", CheckpointName(step)));
    }
  }

  // Expects that every checkpoint in `dir` opens, and has the tensors of its
  // step.
  void ExpectWholeCheckpoints(const std::string& dir) {
    const auto paths = ListCheckpoints(plain_, dir);
    ASSERT_TRUE(paths.ok()) << paths.status();
    for (const std::string& path : *paths) {
      const absl::StatusOr<Checkpoint> checkpoint =
          Checkpoint::Open(plain_, path);
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      EXPECT_EQ(checkpoint->ModelNames().size(), 6u) << path;
      EXPECT_EQ(TensorFiles(path), reference_[checkpoint->state().step])
          << path;
    }
  }

  base::PosixFileSystem plain_;
  base::FaultyFileSystem counting_;
  std::map<std::int64_t, std::map<std::string, std::string>> reference_;
};

TEST_F(CheckpointShardsTest, InAnyOrder) {
  std::set<std::string> orders;
  const std::vector<std::uint64_t> seeds = Seeds(100);
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayCommand(seed));
    const std::string dir = FreshFolder("any_order");
    base::FaultyFileSystem files;
    const Simulated run = SimulateOnDisk(Pipelined(dir, &files), seed);
    ASSERT_TRUE(run.result.ok()) << run.result.status();
    EXPECT_EQ(run.reports.checkpoints.size(), 3u);
    ExpectWholeCheckpoints(dir);
    EXPECT_EQ(plain_.List(dir).value(),
              (std::vector<std::string>{kLockName, CheckpointName(2),
                                        CheckpointName(3)}));
    std::string order;
    for (const std::string& line : files.log()) {
      if (!absl::StartsWith(line, "create ") ||
          !absl::StrContains(line, "00000001") ||
          !absl::StrContains(line, "/model-0000")) {
        continue;
      }
      order += line[line.find("/model-0000") + 11];
    }
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), std::min<std::size_t>(4, 1 + seeds.size() / 10))
      << "the seeds choose who writes first";
}

TEST_F(CheckpointShardsTest, OnADiskThatFailsAtAnyMoment) {
  const int changes = counting_.changes();
  ASSERT_GT(changes, 60);
  std::size_t failures = 0;
  const std::vector<std::uint64_t> seeds = Seeds(300);
  for (const std::uint64_t seed : seeds) {
    const int change = static_cast<int>(seed * 7919 % changes);
    const bool crash = seed % 2 == 0;
    SCOPED_TRACE(absl::StrCat(crash ? "crash" : "failure", " at change ",
                              change, ReplayCommand(seed)));
    const std::string dir = FreshFolder("fails");
    base::FaultyFileSystem files;
    crash ? files.CrashAt(change) : files.FailAt(change, ENOSPC);
    const Simulated run = SimulateOnDisk(Pipelined(dir, &files), seed);
    ExpectWholeCheckpoints(dir);
    if (!files.failed()) continue;
    if (run.result.ok()) continue;  // the fault struck during a removal
    ++failures;
    const std::string message(run.result.status().message());
    // At the start the folder is made and locked, without a checkpointer.
    EXPECT_EQ(absl::StrContains(message, "checkpointer: "), change > 1)
        << message;
    EXPECT_TRUE(absl::StrContains(message, dir)) << message;
    // The newest checkpoint that was reported still exists.
    if (!run.reports.checkpoints.empty()) {
      EXPECT_TRUE(plain_.Exists(run.reports.checkpoints.back()));
    }
    const bool while_writing = absl::StartsWith(files.log()[change], "append");
    if (crash || !while_writing) continue;
    const std::vector<std::string> names = plain_.List(dir).value();
    for (const std::string& name : names) {
      EXPECT_TRUE(name == kLockName || ParseCheckpointName(name))
          << name << " is left";
    }
  }
  if (seeds.size() > 1) {
    EXPECT_GT(3 * failures, 2 * seeds.size());
  }
}

}  // namespace
}  // namespace troupe::actors
