#include "actors/supervision/step_grants.h"

#include <optional>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(StepGrantsTest, ReachTwoWindowsAheadOfTheSlowestRank) {
  StepGrants grants(/*ranks=*/2, /*first_step=*/10, /*window_max=*/1);
  grants.SetBoundary(20);
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(12));
  EXPECT_EQ(grants.Next(), std::nullopt) << "nothing was done since";
  grants.Commit(/*rank=*/0, /*steps=*/12, /*seconds=*/1);
  EXPECT_EQ(grants.Committed(), 10);
  EXPECT_EQ(grants.Next(), std::nullopt) << "rank 1 is behind";
  grants.Commit(1, 11, 2);
  EXPECT_EQ(grants.Committed(), 11);
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(13));
  EXPECT_FALSE(grants.AllDone());
}

TEST(StepGrantsTest, EndAtTheBoundary) {
  StepGrants grants(1, 0);
  grants.SetBoundary(1);
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(1));
  EXPECT_FALSE(grants.AtBoundary());
  grants.Commit(0, 1, 1);
  EXPECT_TRUE(grants.AtBoundary());
  EXPECT_EQ(grants.Next(), std::nullopt);
  grants.SetBoundary(3);
  EXPECT_FALSE(grants.AtBoundary());
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(3));
}

TEST(StepGrantsTest, AnEarlierBoundaryIsWhatIsGranted) {
  StepGrants grants(1, 0, 1);
  grants.SetBoundary(100);
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(2));
  grants.Commit(0, 1, 1);
  grants.StopAtGranted();
  EXPECT_FALSE(grants.AtBoundary());
  EXPECT_EQ(grants.Next(), std::nullopt);
  grants.Commit(0, 2, 2);
  EXPECT_TRUE(grants.AtBoundary());
}

TEST(StepGrantsTest, GrantNothingAfterAHalt) {
  StepGrants grants(2, 0, 1);
  grants.SetBoundary(100);
  EXPECT_EQ(grants.Next(), std::optional<std::int64_t>(2));
  grants.Commit(0, 2, 1), grants.Commit(1, 1, 1);
  grants.Halt();
  EXPECT_EQ(grants.Next(), std::nullopt);
  EXPECT_FALSE(grants.AtBoundary()) << "rank 1 has a granted step to do";
  grants.Commit(1, 2, 2);
  EXPECT_TRUE(grants.AtBoundary());
  EXPECT_TRUE(grants.AllDone());
}

TEST(StepGrantsTest, KnowTheRanksOfTheJob) {
  const StepGrants grants(2, 0);
  EXPECT_TRUE(grants.CheckRank(0, "progress").ok());
  EXPECT_TRUE(grants.CheckRank(1, "progress").ok());
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(grants.CheckRank(rank, "progress").code(),
              absl::StatusCode::kInternal);
  }
}

TEST(StepGrantsTest, NameThePositionOfEachRank) {
  StepGrants grants(2, 0, 4);
  grants.SetBoundary(2);
  grants.Next();
  grants.Commit(1, 1, 1);
  EXPECT_EQ(grants.ToString(),
            "rank 0 has done 0, rank 1 has done 1 of 2 granted steps");
}

}  // namespace
}  // namespace troupe::actors
