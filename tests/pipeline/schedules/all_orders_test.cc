// All orders in which small pipelines can run, under every named schedule and
// both dispatches: no state is a deadlock, and no rank ever holds more
// activations than its table does in its own order.
// docs/schedules.md has the numbers of states.

#include "tests/pipeline/all_orders.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/schedules/schedules.h"
#include "tests/pipeline/schedules/engine_tables.h"

namespace troupe::pipeline {
namespace {

constexpr int kRanksMax = 3;
constexpr int kMicroBatchesMax = 4;
// Larger pipelines, or ranks with more compute actions, have too many states
// for an ordinary run.
constexpr int kStagesMax = 4;
constexpr std::size_t kComputeMax = 16;

// Numbers of states over all sizes that a schedule takes.
struct States {
  int jobs = 0;
  std::int64_t arrival = 0, strict = 0;
};

std::vector<int> ChunksOf(const NamedSchedule& schedule) {
  return schedule.chunks == 0 ? std::vector<int>{1, 2}
                              : std::vector<int>{schedule.chunks};
}

// All orders of one job, under both dispatches.
void TryBoth(const NamedSchedule& schedule, const Mesh& mesh, int micro_batches,
             int chunks, States& states) {
  const auto tables = schedule.tables(mesh.pp(), micro_batches, chunks);
  if (!tables.ok()) return;  // it does not take these sizes
  if (mesh.pp() * chunks > kStagesMax &&
      tables->front().actions.size() > kComputeMax) {
    return;
  }
  ++states.jobs;
  for (const Dispatch dispatch : {Dispatch::kArrival, Dispatch::kStrict}) {
    const EngineTables job(mesh, PlacementFor(schedule, mesh.pp(), chunks),
                           *tables, dispatch);
    const AllOrders all = job.TryAllOrders();
    EXPECT_EQ(all.error, "")
        << schedule.name << ", " << mesh.ToString() << ", m " << micro_batches
        << ", chunks " << chunks << "\n"
        << ToGrid(*tables);
    // The bound is tight: some order reaches it.
    EXPECT_EQ(all.activations_max, job.bounds) << schedule.name;
    (dispatch == Dispatch::kArrival ? states.arrival : states.strict) +=
        all.states;
  }
}

class AllOrdersTest : public testing::TestWithParam<NamedSchedule> {};

TEST_P(AllOrdersTest, EndAndKeepTheBound) {
  States states;
  for (int pp = 1; pp <= kRanksMax; ++pp) {
    for (int m = 1; m <= kMicroBatchesMax; ++m) {
      for (const int chunks : ChunksOf(GetParam())) {
        TryBoth(GetParam(), Mesh(/*dp=*/1, pp), m, chunks, states);
      }
    }
  }
  EXPECT_GT(states.jobs, 0);
  std::printf("| `%s` | %d | %lld | %lld |\n", GetParam().name.c_str(),
              states.jobs, static_cast<long long>(states.arrival),
              static_cast<long long>(states.strict));
  RecordProperty("states_by_arrival", absl::StrCat(states.arrival));
  RecordProperty("states_strict", absl::StrCat(states.strict));
}

// Replicas, whose ranks pair their collectives.
TEST_P(AllOrdersTest, OfReplicasToo) {
  States states;
  const int chunks = ChunksOf(GetParam()).front();
  TryBoth(GetParam(), Mesh(/*dp=*/2, /*pp=*/3 - chunks), /*micro_batches=*/1,
          chunks, states);
  std::printf("%d jobs, %lld and %lld states\n", states.jobs,
              static_cast<long long>(states.arrival),
              static_cast<long long>(states.strict));
}

INSTANTIATE_TEST_SUITE_P(Schedules, AllOrdersTest,
                         testing::ValuesIn(NamedSchedules()),
                         [](const auto& info) { return info.param.name; });

// The search can fail: it finds tables that deadlock.

AllOrders OrdersOf(const std::string& grid, Dispatch dispatch) {
  const Tables tables = *ParseGrid(grid);
  const int pp = static_cast<int>(tables.size());
  return EngineTables(Mesh(/*dp=*/1, pp), LoopedPlacement(pp, 1), tables,
                      dispatch)
      .TryAllOrders();
}

TEST(AllOrdersTest, FindsTablesThatWaitForEachOther) {
  const char* const grid =
      "rank 0: F0 B0 F1 B1\n"
      "rank 1: F0 F1 B0 B1\n";
  const std::string error = OrdersOf(grid, Dispatch::kStrict).error;
  EXPECT_TRUE(absl::StartsWith(
      error,
      "rank 0 has left RG0 B0 F1 SA1 LR RG1 B1 AR0 UP0, rank 1 has left RA1 F1 "
      "LR B0 SG0 B1 SG1 AR0 UP0, after: 0:F0 0:F0. 1:RA0. 1:F0 1:F0."))
      << error;
  // By arrival, rank 1 goes on with B0.
  EXPECT_EQ(OrdersOf(grid, Dispatch::kArrival).error, "");
}

TEST(AllOrdersTest, FindsAnActivationTooMany) {
  EngineTables job(Mesh(/*dp=*/1, /*pp=*/2), LoopedPlacement(2, 1),
                   *OneForwardOneBackward(2, 3), Dispatch::kArrival);
  --job.bounds[0];
  const std::string error = job.TryAllOrders().error;
  EXPECT_TRUE(absl::StartsWith(
      error, "rank 0: F1 keeps more activations than the bound, after:"))
      << error;
}

TEST(AllOrdersTest, FindsAMessageThatNobodySends) {
  EngineTables job(Mesh(/*dp=*/1, /*pp=*/2), LoopedPlacement(2, 1),
                   *GPipe(2, 1), Dispatch::kArrival);
  auto& actions = job.tables[0].actions;
  actions[job.tables[0].Find(ActionKind::kSendActivation, 0)].index = 1;
  EXPECT_EQ(job.TryAllOrders().error, "rank 1: RA0 has no partner on rank 0");
}

}  // namespace
}  // namespace troupe::pipeline
