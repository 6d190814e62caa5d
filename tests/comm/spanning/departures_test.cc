#include "comm/spanning/operation/departures.h"

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

TEST(Departures, FailOnlyCollectivesThatTheRankDidNotJoin) {
  const GroupLayout layout({0, 0, 1}, /*process=*/0);
  Departures departures(&layout);
  EXPECT_TRUE(departures.Before(0).ok());
  departures.Add(/*rank=*/2, /*joined=*/7);
  EXPECT_TRUE(departures.Before(6).ok());
  EXPECT_EQ(departures.Before(7),
            absl::UnavailableError(
                "rank 2 left the group before collective 7 of it"));
  departures.Add(/*rank=*/0, /*joined=*/3);
  EXPECT_EQ(departures.Before(7),
            absl::UnavailableError(
                "ranks 0, 2 left the group before collective 7 of it"));
}

TEST(Departures, AMemberHasDepartedWithItsLastRank) {
  const GroupLayout layout({0, 0, 1}, /*process=*/0);
  Departures departures(&layout);
  departures.Add(/*rank=*/1, /*joined=*/0);
  EXPECT_FALSE(departures.HasDeparted(0));
  departures.Add(/*rank=*/0, /*joined=*/0);
  EXPECT_TRUE(departures.HasDeparted(0));
  EXPECT_FALSE(departures.HasDeparted(1));
  EXPECT_EQ(departures.ranks(), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace troupe::comm::internal
