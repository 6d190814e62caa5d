// A job over two to five simulated nodes, under thousands of seeds: joining,
// signs of life, the store, the crew, training, checkpoints, stop and end, with
// nodes and links that fail at any message. docs/simulation.md has a table.

#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/cluster/cluster_judge.h"
#include "tests/actors/cluster/cluster_scenario.h"
#include "tests/actors/cluster/simulated_cluster.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

std::string Replay(const ClusterScenario& scenario, std::uint64_t seed) {
  return absl::StrCat("\n", ToString(scenario), ReplayCommand(seed));
}

// Returns the bytes of a checkpoint's tensors.
std::string SavedBytes(const std::string& path) {
  return FileBytes(path + "/model.safetensors") +
         FileBytes(path + "/optimizer.safetensors");
}

// Counts the runs that have reached each situation, since seeds that reach none
// prove nothing.
class Census {
 public:
  void Count(const ClusterScenario& scenario, const ClusterRun& run) {
    for (const std::string& what : Situations(scenario, run)) ++counts_[what];
    ++runs_;
    for (const NodeRun& node : run.nodes) {
      if (node.verdict &&
          absl::StrContains(node.verdict->status().message(), "of the wait ")) {
        ++counts_["who waits for whom"];
        break;
      }
    }
  }
  void Print() const {
    std::printf("  of %d runs\n", runs_);
    for (const auto& [what, count] : counts_) {
      std::printf("  %s: %d\n", what.c_str(), count);
    }
  }
  // Expects at least one run in `one_in` to have reached each situation.
  void ExpectEach(const std::vector<std::string>& all, int one_in) const {
    if (runs_ < 50) return;  // a few seeds are replayed
    for (const std::string& what : all) {
      const auto found = counts_.find(what);
      const int count = found == counts_.end() ? 0 : found->second;
      EXPECT_GE(count * one_in, runs_) << what;
    }
  }

 private:
  std::map<std::string, int> counts_;
  int runs_ = 0;
};

TEST(ClusterSimTest, OneVerdictThatNamesTheCulprit) {
  Census census;
  const std::vector<std::uint64_t> seeds = Seeds(10'000);
  for (const std::uint64_t seed : seeds) {
    const ClusterScenario scenario = DrawScenario(seed);
    const ClusterRun run = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, run), "") << Replay(scenario, seed);
    census.Count(scenario, run);
  }
  census.Print();
  census.ExpectEach({"2 nodes",
                     "3 nodes",
                     "4 nodes",
                     "5 nodes",
                     "2 stages: done",
                     "2 stages: ended",
                     "3 stages: done",
                     "3 stages: ended",
                     "inline: done",
                     "inline: ended",
                     "a number that is taken: ended",
                     "another configuration: ended",
                     "another size: ended",
                     "another version: ended",
                     "bad data: ended",
                     "late: done",
                     "late: ended",
                     "no ranks: ended",
                     "slow: done",
                     "slow: ended",
                     "stop: done",
                     "stopped early",
                     "stranger: done",
                     "unfit: ended",
                     "cut while joining: ended",
                     "cut while training: ended",
                     "death while joining: ended",
                     "death while training: ended",
                     "pause while joining: ended",
                     "pause while training: ended",
                     "reset while joining: ended",
                     "reset while training: ended",
                     "cut (harmless) while training: done",
                     "pause (harmless) while training: done",
                     "stale (harmless) while training: done",
                     "side cut (harmless) while training: done"},
                    /*one_in=*/250);
  census.ExpectEach({"side reset while training: ended"}, /*one_in=*/1000);
  census.ExpectEach({"who waits for whom"}, /*one_in=*/100);
}

TEST(ClusterSimTest, NoCheckpointThatCannotBeRead) {
  base::PosixFileSystem files;
  const std::string dir = testing::TempDir() + "/cluster_sim";
  Census census;
  const std::vector<std::uint64_t> seeds = Seeds(400);
  for (const std::uint64_t seed : seeds) {
    const ClusterScenario scenario = DrawScenario(seed, dir);
    ASSERT_EQ(files.RemoveAll(dir), absl::OkStatus());
    const ClusterRun run = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, run), "") << Replay(scenario, seed);
    census.Count(scenario, run);
  }
  census.Print();
  census.ExpectEach({"checkpoints: done", "checkpoints: ended",
                     "full disk: done", "full disk: ended"},
                    /*one_in=*/50);
  EXPECT_EQ(files.RemoveAll(dir), absl::OkStatus());
}

// The process that dies has written a shard, or is the one that gives the
// checkpoint its name. It dies at the message that reports the last shard, or
// soon after it.
TEST(ClusterSimTest, DeathBetweenTheLastShardAndTheName) {
  base::PosixFileSystem files;
  const std::string dir = testing::TempDir() + "/cluster_sim_death";
  int named = 0, unnamed = 0;
  for (const std::uint64_t seed : Seeds(800)) {
    ClusterScenario scenario = DrawScenario(seed, dir);
    if (scenario.stages == 1) continue;
    scenario.oddity = Oddity::kNone;
    scenario.plan.faults.clear();
    scenario.steps = 1;
    ASSERT_EQ(files.RemoveAll(dir), absl::OkStatus());
    const ClusterRun whole = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, whole), "") << Replay(scenario, seed);
    if (whole.shards_at.empty()) continue;  // node 0 has them all
    Fault death;
    death.node = seed % 2 == 0 ? 0 : scenario.nodes() - 1;
    death.heard = seed % 3 == 0;
    death.at = whole.shards_at.back() + static_cast<std::int64_t>(seed % 5);
    scenario.plan.faults = {death};
    ASSERT_EQ(files.RemoveAll(dir), absl::OkStatus());
    const ClusterRun run = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, run), "") << Replay(scenario, seed);
    const auto there = ListCheckpoints(files, dir);
    ASSERT_TRUE(there.ok()) << there.status();
    (there->empty() ? unnamed : named) += run.nodes[death.node].gone;
  }
  std::printf("  after a death: %d checkpoints with a name, %d without\n",
              named, unnamed);
  EXPECT_TRUE(named + unnamed < 20 || (named > 0 && unnamed > 0));
  EXPECT_EQ(files.RemoveAll(dir), absl::OkStatus());
}

// Each rank writes its slices into the files. The process that dies after the
// first step has yet to write them, has written them, or is the one that names
// the checkpoint. The next run goes on from what has a name.
TEST(ClusterSimTest, DeathBetweenTheWritesOfTwoOwners) {
  base::PosixFileSystem files;
  const std::string dir = testing::TempDir() + "/cluster_sim_owners";
  const auto last = [&] { return SavedBytes(dir + "/step-00000002"); };
  int named = 0, torn = 0;
  const std::vector<std::uint64_t> seeds = Seeds(60);
  for (const std::uint64_t seed : seeds) {
    ClusterScenario scenario = DrawScenario(seed, dir);
    scenario.oddity = Oddity::kNone;
    scenario.plan.faults.clear();
    scenario.stages = 1;
    scenario.zero_stage = 1;
    scenario.steps = 2;
    ASSERT_EQ(files.RemoveAll(dir), absl::OkStatus());
    const ClusterRun whole = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, whole), "") << Replay(scenario, seed);
    const std::string want = last();
    // Ranks that report their part to another node.
    const std::size_t owners =
        std::accumulate(scenario.ranks.begin() + 1, scenario.ranks.end(), 0);
    ASSERT_EQ(whole.shards_at.size(), 2 * owners) << Replay(scenario, seed);

    Fault death;
    death.node = static_cast<int>(seed % scenario.nodes());
    death.heard = seed % 3 == 0;
    const std::int64_t begin = whole.shards_at[owners] - 4;
    const std::int64_t span = whole.shards_at.back() + 4 - begin;
    death.at = begin + static_cast<std::int64_t>(seed * 7919) % span;
    scenario.plan.faults = {death};
    ASSERT_EQ(files.RemoveAll(dir), absl::OkStatus());
    const ClusterRun run = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, run), "") << Replay(scenario, seed);
    const auto there = ListCheckpoints(files, dir);
    ASSERT_TRUE(there.ok()) << there.status();
    if (there->size() == 2) {
      ++named;
      ASSERT_EQ(last(), want) << Replay(scenario, seed);
      continue;
    }
    // The last checkpoint is begun once the one before it has its name.
    const bool began = run.shards_at.size() > owners;
    ASSERT_TRUE(there->size() == 1 || !began) << Replay(scenario, seed);
    torn += began;

    scenario.plan.faults.clear();
    scenario.resume = true;
    const ClusterRun resumed = SimulateCluster(scenario, seed);
    ASSERT_EQ(Judge(scenario, resumed), "") << Replay(scenario, seed);
    ASSERT_TRUE(resumed.nodes[0].verdict->ok()) << Replay(scenario, seed);
    ASSERT_EQ(resumed.shards_at.size(), (2 - there->size()) * owners)
        << Replay(scenario, seed);
    ASSERT_EQ(last(), want) << Replay(scenario, seed);
  }
  std::printf(
      "  of %d deaths: %d checkpoints with a name, %d that some wrote\n",
      static_cast<int>(seeds.size()), named, torn);
  EXPECT_TRUE(seeds.size() < 50 || (named > 0 && torn > 0));
  EXPECT_EQ(files.RemoveAll(dir), absl::OkStatus());
}

TEST(ClusterSimTest, TheSameSeedGivesTheSameRun) {
  for (const std::uint64_t seed : Seeds(50)) {
    const ClusterScenario scenario = DrawScenario(seed);
    EXPECT_EQ(SimulateCluster(scenario, seed).hash,
              SimulateCluster(scenario, seed).hash)
        << Replay(scenario, seed);
  }
}

}  // namespace
}  // namespace troupe::actors
