#include "actors/supervision/job_failure.h"

#include <vector>

#include "absl/status/status.h"
#include "actors/protocol/strand_guard.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

Failure FailureOf(int rank, absl::StatusCode code, const char* message) {
  return MakeFailure(/*generation=*/1, rank, "compute",
                     absl::Status(code, message));
}

TEST(JobFailureTest, KeepsTheFirst) {
  JobFailure failure;
  EXPECT_FALSE(failure.kept());
  failure.Keep(FailureOf(1, absl::StatusCode::kInternal, "first"));
  failure.Keep(FailureOf(0, absl::StatusCode::kInternal, "second"));
  EXPECT_EQ(failure.kept()->message, "first");
}

TEST(JobFailureTest, DecidesAtOnce) {
  JobFailure failure;
  failure.Decide(FailureOf(1, absl::StatusCode::kInternal, "broken"));
  EXPECT_TRUE(failure.Settle(JobFailure::TimePoint()));
  EXPECT_EQ(failure.decision(), absl::InternalError("rank 1, compute: broken"));
  EXPECT_TRUE(failure.ToAsk().empty());
}

TEST(JobFailureTest, HoldsAFailureUntilItsTime) {
  JobFailure failure;
  const JobFailure::TimePoint start;
  failure.Hold(FailureOf(0, absl::StatusCode::kDeadlineExceeded, "late"),
               /*ranks=*/2, /*roster=*/nullptr, start);
  EXPECT_EQ(failure.ToAsk(), std::vector<int>({0, 1}));
  EXPECT_FALSE(failure.Settle(start));
  EXPECT_FALSE(failure.is_decided());
  EXPECT_TRUE(failure.Settle(start + HeldVerdict::kHeldMax));
  EXPECT_TRUE(failure.is_decided());
  EXPECT_EQ(failure.decision().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(failure.ToAsk().empty()) << "the decision is made";
}

TEST(JobFailureTest, TheCauseReplacesACollectiveThatWasGivenUp) {
  JobFailure failure;
  const JobFailure::TimePoint start;
  failure.Hold(FailureOf(0, absl::StatusCode::kCancelled, "given up"),
               /*ranks=*/2, /*roster=*/nullptr, start);
  EXPECT_FALSE(failure.Settle(start));
  failure.Add(FailureOf(1, absl::StatusCode::kInternal, "broken"));
  EXPECT_TRUE(failure.Settle(start));
  EXPECT_EQ(failure.decision(), absl::InternalError("rank 1, compute: broken"));
}

TEST(JobFailureTest, ALaterOneReplacesItAfterAReset) {
  JobFailure failure;
  failure.Decide(FailureOf(0, absl::StatusCode::kInternal, "first"));
  failure.Reset();
  EXPECT_FALSE(failure.is_decided());
  failure.Decide(FailureOf(0, absl::StatusCode::kInternal, "second"));
  EXPECT_EQ(failure.decision(), absl::InternalError("rank 0, compute: second"));
}

}  // namespace
}  // namespace troupe::actors
