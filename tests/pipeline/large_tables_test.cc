// Tables of a large pipeline are produced, lowered, printed, parsed, validated
// and run in a time that is linear in their actions. The goal is a second for
// 64 ranks, 512 micro-batches and 2 chunks; the limit here is ten times that,
// for slow builds and busy machines.

#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::pipeline {
namespace {

constexpr int kRanks = 64;
constexpr int kMicroBatches = 512;
constexpr double kSecondsMax = 10;

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin_)
        .count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
};

std::vector<StepTable> Grid(int chunks) {
  const Placement placement = LoopedPlacement(kRanks, chunks);
  const std::vector<int> buckets(chunks, 8);
  std::vector<StepTable> tables;
  for (int pp = 0; pp < kRanks; ++pp) {
    tables.push_back(AddReductions(
        AddTransfers(GPipeTable(kMicroBatches, chunks), EndsAt(placement, pp)),
        buckets, {}));
    EXPECT_EQ(Validate(tables.back()), absl::OkStatus());
  }
  return tables;
}

TEST(LargeTablesTest, AreMadeAndValidated) {
  for (int chunks : {1, 2}) {
    const Stopwatch watch;
    const std::vector<StepTable> tables = Grid(chunks);
    const double seconds = watch.Seconds();
    std::size_t actions = 0;
    for (const StepTable& table : tables) actions += table.actions.size();
    std::printf(
        "%d ranks, %d chunk(s), %d micro-batches: %zu actions, %.3f s\n",
        kRanks, chunks, kMicroBatches, actions, seconds);
    EXPECT_LT(seconds, kSecondsMax);
  }
}

TEST(LargeTablesTest, AreParsed) {
  const std::vector<StepTable> tables = Grid(2);
  const Stopwatch watch;
  for (const StepTable& table : tables) {
    ASSERT_EQ(*ParseTable(table.ToString()), table);
  }
  EXPECT_LT(watch.Seconds(), kSecondsMax);
}

// Signals from outside arrive in the worst order: the last receives first.
TEST(LargeTablesTest, RunInAnyOrder) {
  TableCursor cursor(Grid(2)[kRanks / 2]);
  const Stopwatch watch;
  for (int step = 0; step < 10; ++step) {
    cursor.Begin();
    const auto& actions = cursor.table().actions;
    for (int i = static_cast<int>(actions.size()) - 1; i >= 0; --i) {
      if (IsReceive(actions[i].kind)) cursor.Finish(i);
      EXPECT_EQ(cursor.NextRunnable(true), -1);
    }
    for (int chunk : {0, 1}) {
      for (int k = 0; k < 8; ++k) {
        for (SignalKind kind :
             {SignalKind::kBucketReady, SignalKind::kBucketReleased,
              SignalKind::kBucketReduced}) {
          cursor.Give({kind, k, chunk});
        }
      }
    }
    cursor.Give({SignalKind::kLossReduced});
    for (int next; (next = cursor.NextRunnable(false)) >= 0;) {
      cursor.Start(next);
      cursor.Finish(next);
    }
    ASSERT_TRUE(cursor.complete()) << cursor.Unfinished();
  }
  EXPECT_LT(watch.Seconds(), kSecondsMax);
}

}  // namespace
}  // namespace troupe::pipeline
