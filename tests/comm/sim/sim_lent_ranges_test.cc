#include "comm/sim/sim_lent_ranges.h"

#include <memory>

#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

struct LentRange {
  char bytes[8] = {};
  SharedRange range{/*id=*/5, bytes, sizeof(bytes)};
};

TEST(SimLentRangesTest, AnOddSeedLendsAfterADelay) {
  SimClock clock(/*seed=*/1);
  SimLentRanges lent(&clock, /*processes=*/3, /*at_once=*/false);
  LentRange here;
  EXPECT_FALSE(lent.Lend(/*from=*/0, /*to=*/2, here.range));
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 0, 8), nullptr);
  clock.AdvanceTo(SimClock::kDelayMax);
  EXPECT_TRUE(lent.Lend(/*from=*/0, /*to=*/2, here.range));
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 2, 6).get(), here.bytes + 2);
}

TEST(SimLentRangesTest, LendsBytesOfTheRangeToOneProcess) {
  SimClock clock(/*seed=*/2);
  SimLentRanges lent(&clock, /*processes=*/3, /*at_once=*/true);
  LentRange here;
  EXPECT_TRUE(lent.Lend(/*from=*/0, /*to=*/2, here.range));
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 8, 0).get(), here.bytes + 8);
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 8, 1), nullptr);
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 9, 0), nullptr);
  EXPECT_EQ(lent.Borrow(/*by=*/1, /*from=*/0, 5, 0, 8), nullptr);
  EXPECT_EQ(lent.Borrow(/*by=*/0, /*from=*/2, 5, 0, 8), nullptr);
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 6, 0, 8), nullptr);
  lent.TakeBack(/*from=*/0, /*to=*/2, 5);
  EXPECT_EQ(lent.Borrow(/*by=*/2, /*from=*/0, 5, 0, 8), nullptr);
}

TEST(SimLentRangesTest, HoldsUntilTheLenderGivesUp) {
  SimClock clock(/*seed=*/2);
  SimLentRanges lent(&clock, /*processes=*/3, /*at_once=*/true);
  lent.GiveUp(/*from=*/0, /*to=*/2);
  EXPECT_FALSE(lent.Holds(/*by=*/2, /*from=*/0));
  EXPECT_TRUE(lent.Holds(/*by=*/0, /*from=*/2));
  EXPECT_TRUE(lent.Holds(/*by=*/1, /*from=*/0));
}

}  // namespace
}  // namespace troupe::comm
