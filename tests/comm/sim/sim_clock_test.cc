#include "comm/sim/sim_clock.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

TEST(SimClockTest, NeverGoesBack) {
  SimClock clock(/*seed=*/1);
  EXPECT_EQ(clock.now(), 0u);
  clock.AdvanceTo(30);
  clock.AdvanceTo(20);
  EXPECT_EQ(clock.now(), 30u);
}

TEST(SimClockTest, ASeedGivesTheSameDelays) {
  SimClock clock(/*seed=*/7), same(/*seed=*/7), other(/*seed=*/8);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t due = clock.AfterDelay();
    ASSERT_EQ(due, same.AfterDelay());
    if (due == other.AfterDelay()) ++equal;
  }
  EXPECT_LT(equal, 50);
}

TEST(SimClockTest, MostDelaysAreShortAndSomeAreLong) {
  SimClock clock(/*seed=*/3);
  clock.AdvanceTo(500);
  int longer = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t due = clock.AfterDelay();
    ASSERT_GT(due, 500u);
    ASSERT_LE(due, 500u + SimClock::kDelayMax);
    if (due > 520u) ++longer;
  }
  EXPECT_GT(longer, 30);
  EXPECT_LT(longer, 120);
}

}  // namespace
}  // namespace troupe::comm
