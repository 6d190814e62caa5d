// The schedule that docs/schedules.md adds step by step, whole: a producer, its
// picture, its check, and its runs.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "pipeline/mesh.h"
#include "pipeline/table/schedule.h"
#include "tests/pipeline/table_simulator.h"

namespace troupe::pipeline {
namespace {

// 1F1B: a stage begins with as many forwards as there are stages behind it,
// then alternates, so that it holds at most stages - stage activations (Fan et
// al. 2021, DAPPLE, arXiv:2007.01045, sec. 3).
StepTable OneForwardOneBackwardTable(int micro_batches, int stage, int stages) {
  const int ahead = std::min(micro_batches, stages - 1 - stage);
  StepTable table;
  for (int m = 0; m < ahead; ++m) {
    table.actions.push_back({ActionKind::kForward, m, {}});
  }
  for (int m = 0; m < micro_batches; ++m) {
    if (m + ahead < micro_batches) {
      table.actions.push_back({ActionKind::kForward, m + ahead, {}});
    }
    table.actions.push_back({ActionKind::kBackward, m, {}});
  }
  return table;
}

std::vector<StepTable> Tables(int micro_batches, int stages, int buckets) {
  std::vector<StepTable> tables;
  for (int stage = 0; stage < stages; ++stage) {
    StepTable table = OneForwardOneBackwardTable(micro_batches, stage, stages);
    table = AddTransfers(table, stage == 0, stage == stages - 1);
    table = AddReductions(table, buckets, {});
    LimitInFlight(table, stages - stage);
    tables.push_back(table);
  }
  return tables;
}

TEST(OwnScheduleTest, LooksLikeThis) {
  EXPECT_EQ(
      ToGrid(Tables(/*micro_batches=*/4, /*stages=*/3, /*buckets=*/1)),
      "rank 0: F0 SA0 F1 SA1 F2 SA2 RG0 B0 F3 SA3 LR RG1 B1 RG2 B2 RG3 B3 "
      "AR0 UP0\n"
      "rank 1: RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RA2 F2 SA2 RG1 B1 SG1 RA3 F3 "
      "SA3 LR RG2 B2 SG2 RG3 B3 SG3 AR0 UP0\n"
      "rank 2: RA0 F0 B0 SG0 RA1 F1 B1 SG1 RA2 F2 B2 SG2 RA3 F3 LR B3 SG3 "
      "AR0 UP0\n");
}

TEST(OwnScheduleTest, CanRun) {
  for (int stages : {1, 2, 3, 5}) {
    for (int micro_batches : {1, 2, 4, 7}) {
      for (const StepTable& table : Tables(micro_batches, stages, 2)) {
        EXPECT_EQ(Validate(table), absl::OkStatus()) << table.ToString();
      }
    }
  }
}

TEST(OwnScheduleTest, EveryStageHoldsNoMoreThanItMay) {
  constexpr int kStages = 4;
  const std::vector<StepTable> tables = Tables(8, kStages, 2);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TableRun run = RunTables(Mesh(/*dp=*/1, kStages), tables, seed);
    ASSERT_EQ(run.error, "") << "seed " << seed;
    for (int stage = 0; stage < kStages; ++stage) {
      ASSERT_LE(run.in_flight_max[stage], kStages - stage) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
