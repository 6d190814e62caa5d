// Mutation tests: bugs that are planted into the tables of a simulated job must
// be found, by the invariants or by comparison with one rank, within few seeds.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/small_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using pipeline::Action;
using pipeline::ActionKind;
using pipeline::Signal;
using pipeline::SignalKind;
using pipeline::StepTable;

constexpr int kRanks = 3;
constexpr std::uint64_t kSeeds = 200;

using Mutation = std::function<void(int rank, StepTable& table)>;

// Rank 0's parameters after the last step, by name, and the run's error.
struct Run {
  std::map<std::string, std::vector<double>> parameters;
  absl::Status status;
  absl::Status invariants;
};

Run Simulate(int ranks, std::uint64_t seed, const Mutation& mutation,
             bool fused = false) {
  Run run;
  SimulationOptions options;
  options.seed = seed;
  options.edit_table = mutation;
  options.after_step = [&](int rank, std::int64_t,
                           const nn::ParameterArena& arena) {
    if (rank != 0) return;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      const auto values = slot.parameter->value.span<double>();
      run.parameters[slot.parameter->name].assign(values.begin(), values.end());
    }
  };
  const JobSpec spec = SmallJob({ranks, Numbers::kExact, 2, fused});
  Simulation simulation(spec, options);
  run.status = simulation.Run().status();
  run.invariants =
      CheckInvariants(simulation.recorder(), simulation.plan(), 0, spec.steps);
  return run;
}

// Ways in which the bug was found; all empty: it was not.
struct Found {
  std::string by_status, by_invariant;
  bool by_comparison = false;
};

using Enough = bool(const Found& found);

bool Always(const Found&) { return true; }

bool ByStatus(const Found& found) { return !found.by_status.empty(); }

bool ByComparison(const Found& found) { return found.by_comparison; }

bool ByInvariantAndComparison(const Found& found) {
  return !found.by_invariant.empty() && found.by_comparison;
}

// Runs as many of kSeeds seeds as TROUPE_SIM_ONE_IN leaves, and then others
// until what they found is enough.
Found Hunt(Enough& enough, const Mutation& mutation, bool fused = false) {
  const Run sound = Simulate(/*ranks=*/1, /*seed=*/0, nullptr);
  const std::uint64_t least = Seeds(kSeeds).size();
  Found found;
  for (std::uint64_t seed = 0;
       seed < least || (seed < kSeeds && !enough(found)); ++seed) {
    const Run run = Simulate(kRanks, seed, mutation, fused);
    if (!run.status.ok()) found.by_status = run.status.ToString();
    if (!run.invariants.ok()) found.by_invariant = run.invariants.ToString();
    if (run.status.ok() && run.parameters != sound.parameters) {
      found.by_comparison = true;
    }
  }
  return found;
}

void DropNeed(StepTable& table, ActionKind kind, SignalKind need) {
  for (Action& action : table.actions) {
    if (action.kind != kind) continue;
    auto& needs = action.needs;
    needs.erase(
        std::remove_if(needs.begin(), needs.end(),
                       [need](const Signal& s) { return s.kind == need; }),
        needs.end());
  }
}

TEST(MutationTest, TheSoundTableIsFoundSound) {
  const Found found = Hunt(Always, nullptr);
  EXPECT_EQ(found.by_status, "");
  EXPECT_EQ(found.by_invariant, "");
  EXPECT_FALSE(found.by_comparison);
}

TEST(MutationTest, BucketsLaunchedOutOfOrder) {
  const Found found =
      Hunt(ByInvariantAndComparison, [](int rank, StepTable& table) {
        if (rank != 1) return;
        const int a = table.Find(ActionKind::kReduceBucket, 0);
        const int b = table.Find(ActionKind::kReduceBucket, 1);
        std::swap(table.actions[a], table.actions[b]);
      });
  // The buckets are equally long, so no group can notice that the sums arrive
  // in the wrong places.
  EXPECT_TRUE(absl::StrContains(found.by_invariant, "rank 1 launched"))
      << found.by_invariant;
  EXPECT_TRUE(found.by_comparison);
}

TEST(MutationTest, ABucketForgotten) {
  const Found found = Hunt(ByInvariantAndComparison, [](int, StepTable& table) {
    // The last bucket is neither reduced nor updated, on any rank.
    const int bucket = table.buckets() - 1;
    auto& actions = table.actions;
    actions.erase(
        std::remove_if(actions.begin(), actions.end(),
                       [bucket](const Action& action) {
                         return action.index == bucket &&
                                (action.kind == ActionKind::kReduceBucket ||
                                 action.kind == ActionKind::kUpdateBucket);
                       }),
        actions.end());
  });
  EXPECT_TRUE(absl::StrContains(found.by_invariant, "not launched"))
      << found.by_invariant;
  EXPECT_TRUE(found.by_comparison);
}

TEST(MutationTest, ABucketForgottenByOneRankHangsAndIsNamed) {
  const Found found = Hunt(ByStatus, [](int rank, StepTable& table) {
    if (rank != 2) return;
    table.actions.pop_back();  // UP of the last bucket
    table.actions.pop_back();  // AR of the last bucket
  });
  // Rank 2 runs the next step, whose first collective is another one.
  EXPECT_NE(found.by_status, "");
}

TEST(MutationTest, AnUpdateBeforeItsReduction) {
  const Found found = Hunt(ByInvariantAndComparison, [](int, StepTable& table) {
    DropNeed(table, ActionKind::kUpdateBucket, SignalKind::kBucketReduced);
  });
  EXPECT_TRUE(absl::StrContains(found.by_invariant, "before its reduction"))
      << found.by_invariant;
  EXPECT_TRUE(found.by_comparison);
}

TEST(MutationTest, AnUpdateBeforeTheLastReaderOfTheWeight) {
  const Found found = Hunt(ByComparison, [](int, StepTable& table) {
    DropNeed(table, ActionKind::kUpdateBucket, SignalKind::kBucketReleased);
  });
  // Orders and counts are right; only the numbers are wrong.
  EXPECT_EQ(found.by_status, "");
  EXPECT_TRUE(found.by_comparison);
}

TEST(MutationTest, TheSoundTableIsFoundSoundWhereReductionsUpdate) {
  const Found found = Hunt(Always, nullptr, /*fused=*/true);
  EXPECT_EQ(found.by_status, "");
  EXPECT_EQ(found.by_invariant, "");
  EXPECT_FALSE(found.by_comparison);
}

TEST(MutationTest, AReductionThatUpdatesBeforeTheLastReaderOfTheWeight) {
  const Mutation mutation = [](int, StepTable& table) {
    DropNeed(table, ActionKind::kReduceUpdateBucket,
             SignalKind::kBucketReleased);
  };
  const Found found = Hunt(ByComparison, mutation, /*fused=*/true);
  EXPECT_EQ(found.by_status, "");
  EXPECT_TRUE(found.by_comparison);
}

// An inline reduction of the loss ends with the last forward, so the bug has
// two parts: the reduction comes too late, and no action waits for it.
TEST(MutationTest, AReductionThatUpdatesBeforeTheDivisorIsThere) {
  const Mutation mutation = [](int, StepTable& table) {
    const int loss = table.Find(ActionKind::kReduceLoss, /*index=*/0);
    table.actions[loss].needs.push_back({SignalKind::kBucketReduced, 0});
    DropNeed(table, ActionKind::kReduceUpdateBucket, SignalKind::kLossReduced);
  };
  const Found found = Hunt(ByComparison, mutation, /*fused=*/true);
  EXPECT_TRUE(found.by_comparison);
}

}  // namespace
}  // namespace troupe::actors
