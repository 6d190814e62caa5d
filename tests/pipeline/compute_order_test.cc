#include "pipeline/table/compute_order.h"

#include "gtest/gtest.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::pipeline {
namespace {

// The table of the last of two stages. The arrival of micro-batch 1 decides
// whether F1 or B0 runs first, unless the order is kept.
StepTable LastStage() {
  return AddReductions(AddTransfers(GPipeTable(2), /*first_stage=*/false,
                                    /*last_stage=*/true),
                       /*buckets=*/1, {});
}

// Returns the actions that may run when F0 has ended and the activation of F1
// has not arrived.
std::string AfterF0(const StepTable& table) {
  TableCursor cursor(table);
  cursor.Begin();
  cursor.Finish(table.Find(ActionKind::kRecvActivation, 0));
  const int forward = table.Find(ActionKind::kForward, 0);
  cursor.Start(forward);
  cursor.Finish(forward);
  const int next = cursor.NextRunnable(/*busy=*/false);
  return next < 0 ? "nothing" : table.actions[next].ToString();
}

TEST(ComputeOrderTest, NothingOvertakes) {
  StepTable table = LastStage();
  EXPECT_EQ(AfterF0(table), "B0");
  KeepComputeOrder(table);
  EXPECT_EQ(AfterF0(table), "nothing");
  EXPECT_TRUE(Validate(table).ok());
}

TEST(ComputeOrderTest, KeepsTheTextAndIsDoneOnce) {
  StepTable table = LastStage();
  KeepComputeOrder(table);
  EXPECT_EQ(table.ToString(), LastStage().ToString());
  const StepTable once = table;
  KeepComputeOrder(table);
  EXPECT_EQ(table, once);
}

}  // namespace
}  // namespace troupe::pipeline
