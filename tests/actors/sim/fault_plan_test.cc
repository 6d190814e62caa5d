#include "actors/sim/fault_plan.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(FaultPlanTest, WhatIsPrintedParses) {
  const char* const plans[] = {
      "delay 0",
      "delay 5ms; cut 0-1 at 17 for 3s; reset 4-0 at 1",
      "delay 0; pause 2 at 17 for 12s; die 2 at 17",
      "delay 1.5s; die 0 at 9 heard; stale 3 at 40",
  };
  for (const std::string plan : plans) {
    const absl::StatusOr<FaultPlan> parsed = ParseFaultPlan(plan);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->ToString(), plan);
  }
}

TEST(FaultPlanTest, EveryFieldIsRead) {
  const FaultPlan plan =
      *ParseFaultPlan("cut 2-1 at 17 for 3s; die 3 at 5 heard");
  ASSERT_EQ(plan.faults.size(), 2u);
  EXPECT_EQ(plan.delay_max, absl::ZeroDuration());
  EXPECT_EQ(plan.faults[0].kind, FaultKind::kCut);
  EXPECT_EQ(plan.faults[0].node, 2);
  EXPECT_EQ(plan.faults[0].peer, 1);
  EXPECT_EQ(plan.faults[0].at, 17);
  EXPECT_EQ(plan.faults[0].lasts, absl::Seconds(3));
  EXPECT_EQ(plan.faults[1].kind, FaultKind::kDie);
  EXPECT_EQ(plan.faults[1].node, 3);
  EXPECT_TRUE(plan.faults[1].heard);
}

TEST(FaultPlanTest, WhatItDoesNotUnderstandIsQuoted) {
  const char* const wrong[] = {
      "die",
      "die 2",
      "die x at 3",
      "die 2 at",
      "die 2 in 3",
      "pause 2 at 3",
      "cut 1 at 3 for 1s",
      "cut 0-1 at 3 for",
      "die 2 at 3 loudly",
      "stale 2 at 3 heard",
      "delay",
      "melt 2 at 3",
  };
  for (const char* text : wrong) {
    const absl::Status status = ParseFaultPlan(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }
}

}  // namespace
}  // namespace troupe::actors
