// Random tables on all stages of random meshes run to their end, in any order
// of overtaking, so tables that users write cannot deadlock.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/mesh.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/schedule.h"
#include "tests/pipeline/table_simulator.h"

namespace troupe::pipeline {
namespace {

// A random merge of F0 F1 .., and B0 B1 .. (or I0 I1 .. and W0 W1 ..), each
// after what it follows from.
StepTable RandomCompute(int micro_batches, bool split,
                        nn::RandomStream& draws) {
  StepTable table;
  int forwards = 0, inputs = 0, weights = 0;
  while (weights < micro_batches) {
    std::vector<ActionKind> may;
    if (forwards < micro_batches) may.push_back(ActionKind::kForward);
    if (inputs < forwards) {
      may.push_back(split ? ActionKind::kBackwardInputs
                          : ActionKind::kBackward);
    }
    if (weights < inputs) may.push_back(ActionKind::kBackwardWeights);
    const ActionKind kind = may[draws.Below(may.size())];
    int& count = kind == ActionKind::kForward           ? forwards
                 : kind == ActionKind::kBackwardWeights ? weights
                                                        : inputs;
    table.actions.push_back({kind, count++, {}});
    if (!split) weights = inputs;
  }
  return table;
}

struct RandomJob {
  Mesh mesh;
  int micro_batches = 1;
  std::vector<StepTable> tables;  // indexed by rank
};

RandomJob MakeRandomJob(nn::RandomStream& draws, int pp_max) {
  RandomJob job;
  job.mesh = Mesh(1 + static_cast<int>(draws.Below(3)),
                  1 + static_cast<int>(draws.Below(pp_max)));
  job.micro_batches = 1 + static_cast<int>(draws.Below(5));
  job.tables.resize(job.mesh.size());
  ReductionOptions options;
  options.update_needs_all_buckets = draws.Below(4) == 0;
  options.fuse_updates = draws.Below(4) == 0;
  options.rounds = 1 + static_cast<int>(draws.Below(3));
  options.sum_parameters = !options.fuse_updates && draws.Below(3) == 0;
  for (int stage = 0; stage < job.mesh.pp(); ++stage) {
    const bool split = draws.Below(2) == 0;
    const int buckets = static_cast<int>(draws.Below(4));
    const StepTable table = AddReductions(
        AddTransfers(RandomCompute(job.micro_batches, split, draws), stage == 0,
                     stage == job.mesh.pp() - 1),
        buckets, options);
    EXPECT_EQ(Validate(table), absl::OkStatus()) << table.ToString();
    EXPECT_EQ(*ParseTable(table.ToString(), options), table);
    for (int rank = 0; rank < job.mesh.size(); ++rank) {
      if (job.mesh.CoordsOf(rank).pp == stage) job.tables[rank] = table;
    }
  }
  return job;
}

nn::RandomStream DrawsOf(std::uint64_t seed) {
  return nn::RandomStream(nn::RandomKey(seed, nn::Purpose::kTest),
                          {0, 0, nn::HashName("job")});
}

constexpr std::uint64_t kSeeds = 1000;

TEST(RandomTablesTest, RunToTheirEnd) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    nn::RandomStream draws = DrawsOf(seed);
    const RandomJob job = MakeRandomJob(draws, /*pp_max=*/4);
    const TableRun run = RunTables(job.mesh, job.tables, seed);
    ASSERT_EQ(run.error, "") << "seed " << seed << "\n" << ToGrid(job.tables);
  }
}

// Separate limits on each stage cannot make a deadlock: micro-batch 0
// completes, then 1, ...
TEST(RandomTablesTest, AtMostNMicroBatchesInFlight) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    nn::RandomStream draws = DrawsOf(seed);
    RandomJob job = MakeRandomJob(draws, /*pp_max=*/4);
    std::vector<int> limits;
    for (StepTable& table : job.tables) {
      limits.push_back(1 + static_cast<int>(draws.Below(job.micro_batches)));
      LimitInFlight(table, limits.back());
    }
    const TableRun run = RunTables(job.mesh, job.tables, seed);
    ASSERT_EQ(run.error, "") << "seed " << seed << "\n" << ToGrid(job.tables);
    for (std::size_t rank = 0; rank < limits.size(); ++rank) {
      ASSERT_LE(run.in_flight_max[rank], limits[rank])
          << "seed " << seed << ", rank " << rank;
    }
  }
}

// If no stage waits for another, computation runs in table order, and so with
// its number of micro-batches in flight.
TEST(RandomTablesTest, OneStageComputesInTableOrder) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    nn::RandomStream draws = DrawsOf(seed);
    const RandomJob job = MakeRandomJob(draws, /*pp_max=*/1);
    const TableRun run = RunTables(job.mesh, job.tables, seed);
    ASSERT_EQ(run.error, "");
    for (std::size_t rank = 0; rank < job.tables.size(); ++rank) {
      std::string planned, done;
      for (const Action& action : job.tables[rank].actions) {
        if (IsCompute(action.kind))
          absl::StrAppend(&planned, action.ToString());
      }
      const StepTable started = *ParseTable(run.started[rank]);
      for (const Action& action : started.actions) {
        if (IsCompute(action.kind)) absl::StrAppend(&done, action.ToString());
      }
      ASSERT_EQ(done, planned) << "seed " << seed << ", rank " << rank;
    }
  }
}

// A forward overtakes a backward that waits for its gradient: table order alone
// does not bound activations.
TEST(RandomTablesTest, WithoutANeedForwardsRunAhead) {
  const StepTable one_each = DataParallelTable(4);
  const std::vector<StepTable> tables = {AddTransfers(one_each, true, false),
                                         AddTransfers(one_each, false, true)};
  int largest = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TableRun run = RunTables(Mesh(1, 2), tables, seed);
    ASSERT_EQ(run.error, "");
    largest = std::max(largest, run.in_flight_max[0]);
  }
  EXPECT_EQ(largest, 4);
}

TEST(RandomTablesTest, SeedsGiveDifferentRuns) {
  const std::vector<StepTable> tables = {
      AddReductions(AddTransfers(GPipeTable(3), true, false), 2, {}),
      AddReductions(AddTransfers(GPipeTable(3), false, true), 2, {})};
  std::vector<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    orders.push_back(RunTables(Mesh(1, 2), tables, seed).started[0]);
  }
  EXPECT_EQ(RunTables(Mesh(1, 2), tables, 0).started[0], orders[0]);
  std::sort(orders.begin(), orders.end());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  EXPECT_GT(orders.size(), 10u);
}

// The simulator can fail: tables that do not fit together.

std::vector<StepTable> TwoStages(const char* first, const char* second) {
  return {*ParseTable(first), *ParseTable(second)};
}

TEST(PlantedBugTest, AnActivationIsNeverSent) {
  const TableRun run = RunTables(
      Mesh(1, 2),
      TwoStages("F0 SA0 F1 RG0 B0 RG1 B1", "RA0 F0 B0 SG0 RA1 F1 B1 SG1"),
      /*seed=*/0);
  EXPECT_EQ(run.error, "rank 0 has left RG1 B1; rank 1 has left RA1 F1 B1 SG1");
}

TEST(PlantedBugTest, NobodyReceives) {
  const TableRun run =
      RunTables(Mesh(1, 2), TwoStages("F0 SA0", "F0"), /*seed=*/0);
  EXPECT_EQ(run.error, "rank 1: RA0 was sent and is not in the table");
  EXPECT_EQ(RunTables(Mesh(1, 1), {*ParseTable("F0 SA0")}, 0).error,
            "rank 0: SA0 has nobody to send to");
}

TEST(PlantedBugTest, CollectivesInDifferentOrders) {
  const TableRun run = RunTables(
      Mesh(2, 1),
      TwoStages("F0 LR B0 AR0 AR1 UP0 UP1", "F0 LR B0 AR1 AR0 UP0 UP1"),
      /*seed=*/0);
  EXPECT_TRUE(absl::StrContains(run.error, " starts AR")) << run.error;
}

TEST(PlantedBugTest, ABucketThatOneRankForgets) {
  const TableRun run = RunTables(
      Mesh(2, 1), TwoStages("F0 LR B0 AR0 UP0", "F0 LR B0"), /*seed=*/0);
  EXPECT_EQ(run.error, "rank 0 has left AR0 UP0");
}

TEST(PlantedBugTest, LimitsThatWaitForEachOther) {
  StepTable first = AddTransfers(GPipeTable(2), true, false);
  // B0 only after F1, and F1 only after B0.
  first.actions[first.Find(ActionKind::kBackward, 0)].needs.push_back(
      {SignalKind::kDone, first.Find(ActionKind::kForward, 1)});
  LimitInFlight(first, 1);
  const TableRun run = RunTables(
      Mesh(1, 2), {first, AddTransfers(GPipeTable(2), false, true)}, 0);
  EXPECT_EQ(run.error,
            "rank 0 has left F1 SA1 B0 RG1 B1; rank 1 has left RA1 F1 B1 SG1");
}

}  // namespace
}  // namespace troupe::pipeline
