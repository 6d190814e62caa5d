// Deliberate bugs in the protocol between processes: each must be found by a
// simulated cluster within a thousand seeds, by a check that says what is
// wrong. docs/simulation.md has the table.

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/cluster/cluster_judge.h"
#include "tests/actors/cluster/cluster_scenario.h"
#include "tests/actors/cluster/planted/bug.h"
#include "tests/actors/cluster/simulated_cluster.h"
#include "tests/actors/sim/planted/hunt.h"

namespace troupe::actors {
namespace {

// Changes of a scenario to situations that few seeds reach by themselves.
void Process0StandsStill(ClusterScenario& scenario, std::uint64_t seed) {
  scenario.oddity = Oddity::kNone;
  Fault pause;
  pause.kind = FaultKind::kPause;
  pause.at = 1 + static_cast<std::int64_t>(seed % 40);
  pause.lasts = 3 * scenario.liveness_timeout;
  scenario.plan.faults = {pause};
}
void TheLastHasNoRanks(ClusterScenario& scenario, std::uint64_t) {
  scenario.oddity = Oddity::kNoRanks;
  scenario.odd_node = scenario.nodes() - 1;
  scenario.plan.faults.clear();
}
// One of the ranks that write their slices into a checkpoint is lost.
void AnOwnerDies(ClusterScenario& scenario, std::uint64_t seed) {
  scenario.oddity = Oddity::kNone;
  scenario.stages = 1;
  scenario.zero_stage = 1;
  Fault death;
  death.node = scenario.nodes() - 1;
  death.at = 60 + static_cast<std::int64_t>(seed * 7 % 120);
  scenario.plan.faults = {death};
}

struct Case {
  Bug bug;
  const char* name;
  // Part of the text that Judge() returns.
  const char* found;
  bool checkpoints = false;
  // Changes the scenario that the seed has drawn; may be null.
  void (*bend)(ClusterScenario& scenario, std::uint64_t seed) = nullptr;
};

#define TROUPE_CASE(bug, ...) \
  { Bug::k##bug, #bug, __VA_ARGS__ }

constexpr Case kCases[] = {
    TROUPE_CASE(StaleCrewIsTaken, "never ended"),
    TROUPE_CASE(StaleFailureIsTaken, "says INTERNAL: of an earlier attempt"),
    TROUPE_CASE(HeartbeatByAnotherClock, "has given no sign of life"),
    TROUPE_CASE(OwnPauseBlamesOthers, "has given no sign of life"),
    TROUPE_CASE(BlamesWhoHasLeft, "says UNAVAILABLE: process 1",
                /*checkpoints=*/false, Process0StandsStill),
    TROUPE_CASE(BeginsWithHoles, "never ended"),
    TROUPE_CASE(LateJoinerIsNotRefused, "is gone: its connection"),
    TROUPE_CASE(EarlyAskerIsForgotten, "no answer in time"),
    TROUPE_CASE(EarlySupervisorIsForgotten, "did not set up its ranks"),
    TROUPE_CASE(NoEndWithoutCrew, "is gone"),
    TROUPE_CASE(DownIsNotHeard, "no answer in time"),
    TROUPE_CASE(RefusalToOneOnly, "no answer in time"),
    TROUPE_CASE(StrangerEndsTheJob, "two processes come with number"),
    TROUPE_CASE(SlowIsNotMissed, "process 0 says OK"),
    TROUPE_CASE(PunctualIsBlamed, "did not set up its ranks"),
    TROUPE_CASE(SilenceWaitsForABeat, "named the silent one after"),
    TROUPE_CASE(FarewellIsLost, "process 0 lacks a farewell"),
    TROUPE_CASE(StaleEndIsTaken, "of an earlier attempt"),
    TROUPE_CASE(AgentBlamesProcess0, "has given no sign of life"),
    TROUPE_CASE(LateCrewLivesOn, "are left", /*checkpoints=*/false,
                TheLastHasNoRanks),
    TROUPE_CASE(WhoeverLeavesHasFailed, "INTERNAL: "),
    TROUPE_CASE(VictimIsBlamed, " has ended"),
    TROUPE_CASE(VerdictIsNotHeld, "nobody was asked who waits for whom"),
    TROUPE_CASE(AsksOnce, "never ended"),
    TROUPE_CASE(CommitsBeforeTheLastShard, "lacks tensors",
                /*checkpoints=*/true),
    TROUPE_CASE(LostOwnerIsAwaited, "named the silent one after",
                /*checkpoints=*/true, AnOwnerDies),
    TROUPE_CASE(ShardFailureIsKept, "no progress for 1m",
                /*checkpoints=*/true),
    TROUPE_CASE(UnfinishedIsLeft, " is left", /*checkpoints=*/true),
    TROUPE_CASE(FirstMicroBatchOnly, "a second time"),
};

std::string RunCase(const Case& c, std::uint64_t seed, std::string* told) {
  const std::string dir = testing::TempDir() + "/cluster_bugs";
  ClusterScenario scenario = DrawScenario(seed, c.checkpoints ? dir : "");
  if (c.bend != nullptr) c.bend(scenario, seed);
  if (c.checkpoints) {
    base::PosixFileSystem files;
    const absl::Status removed = files.RemoveAll(dir);
    if (!removed.ok()) return removed.ToString();
  }
  *told = ToString(scenario);
  return Judge(scenario, SimulateCluster(scenario, seed));
}

class ClusterBugsTest : public testing::TestWithParam<Case> {};

TEST_P(ClusterBugsTest, IsFound) {
  const Case& c = GetParam();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::string scenario;
    ASSERT_EQ(RunCase(c, seed, &scenario), "") << seed << ": " << scenario;
  }
  ExpectFound(c.bug, c.name, c.found, [&](std::uint64_t seed) {
    std::string scenario;
    const std::string wrong = RunCase(c, seed, &scenario);
    return wrong.empty() ? wrong : absl::StrCat(wrong, " (", scenario, ")");
  });
}

INSTANTIATE_TEST_SUITE_P(Bugs, ClusterBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(ClusterBugsTest, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::actors
