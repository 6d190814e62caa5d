#include "actors/supervision/watchdog.h"

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(WatchdogTest, ExpiresOneTimeOutAfterTheLastSign) {
  Watchdog watchdog(absl::Minutes(5));
  const Watchdog::TimePoint start;
  watchdog.Kick(start);
  EXPECT_EQ(watchdog.deadline(), start + std::chrono::minutes(5));
  EXPECT_FALSE(watchdog.IsExpired(start + std::chrono::seconds(299)));
  EXPECT_TRUE(watchdog.IsExpired(start + std::chrono::seconds(300)));
  watchdog.Kick(start + std::chrono::seconds(299));
  EXPECT_FALSE(watchdog.IsExpired(start + std::chrono::seconds(300)));
  EXPECT_EQ(watchdog.Error("rank 0 has done 40 steps"),
            absl::DeadlineExceededError(
                "no progress for 5m (rank 0 has done 40 steps)"));
}

TEST(WatchdogTest, AnInfiniteTimeOutIsTenYears) {
  Watchdog watchdog(absl::InfiniteDuration());
  const Watchdog::TimePoint start;
  watchdog.Kick(start);
  EXPECT_FALSE(watchdog.IsExpired(start + std::chrono::hours(24 * 3649)));
  EXPECT_TRUE(watchdog.IsExpired(start + std::chrono::hours(24 * 3650)));
}

}  // namespace
}  // namespace troupe::actors
