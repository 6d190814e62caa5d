#include "tests/actors/cluster/wait_result.h"

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(WaitResultTest, TheFirstOutcomeCountsAndReturnsOnce) {
  WaitResult result;
  EXPECT_FALSE(result.has_outcome());
  result.AddOutcome(absl::InternalError("rank 1 is broken"));
  result.AddOutcome(JobResult());
  EXPECT_EQ(result.outcomes(), 2);
  EXPECT_FALSE(result.returned().has_value());
  result.Return();
  result.Return(absl::CancelledError("too late"));
  EXPECT_EQ(result.returned()->status(),
            absl::InternalError("rank 1 is broken"));
}

TEST(WaitResultTest, AFailureToStartGivesWayToThatOfTheJob) {
  WaitResult alone, ended, done;
  for (WaitResult* result : {&alone, &ended, &done}) {
    result->FailStart(absl::ResourceExhaustedError("no memory"));
  }
  alone.Return();
  EXPECT_EQ(alone.returned()->status(),
            absl::ResourceExhaustedError("no memory"));
  ended.AddOutcome(absl::InternalError("rank 1 is broken"));
  ended.Return();
  EXPECT_EQ(ended.returned()->status(),
            absl::InternalError("rank 1 is broken"));
  done.AddOutcome(JobResult());
  done.Return();
  EXPECT_EQ(done.returned()->status(),
            absl::ResourceExhaustedError("no memory"));
}

}  // namespace
}  // namespace troupe::actors
