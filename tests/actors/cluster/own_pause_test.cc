#include "actors/cluster/own_pause.h"

#include <chrono>
#include <optional>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// A time-out of 8 s has an interval of 2 s.
class OwnPauseTest : public testing::Test {
 protected:
  OwnPause::TimePoint At(int second) const {
    return OwnPause::TimePoint() + std::chrono::seconds(second);
  }

  const Liveness liveness_{std::chrono::seconds(8)};
  OwnPause pause_{At(0)};
};

TEST_F(OwnPauseTest, ABeatInTimeIsNoPause) {
  EXPECT_FALSE(pause_.IsLate(At(4), liveness_));
  pause_.Beat(At(4));
  EXPECT_FALSE(pause_.IsLate(At(8), liveness_));
  EXPECT_EQ(pause_.Recent(At(8), liveness_), std::nullopt);
}

TEST_F(OwnPauseTest, ALateBeatIsNoPauseThatOthersNotice) {
  EXPECT_TRUE(pause_.IsLate(At(5), liveness_));
  EXPECT_EQ(pause_.Recent(At(5), liveness_), std::nullopt);
}

TEST_F(OwnPauseTest, ALongPauseIsRememberedForATimeOut) {
  EXPECT_TRUE(pause_.IsLate(At(6), liveness_));
  pause_.Beat(At(6));
  const std::optional<OwnPause::Duration> duration = std::chrono::seconds(6);
  EXPECT_EQ(pause_.Recent(At(6), liveness_), duration);
  EXPECT_FALSE(pause_.IsLate(At(8), liveness_));
  EXPECT_EQ(pause_.Recent(At(13), liveness_), duration);
  EXPECT_EQ(pause_.Recent(At(14), liveness_), std::nullopt);
}

}  // namespace
}  // namespace troupe::actors
