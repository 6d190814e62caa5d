#include "actors/cluster/liveness.h"

#include <chrono>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTimeout(8);

class LivenessTest : public testing::Test {
 protected:
  // Returns the silent peer; -1: none.
  int Silent(Liveness::TimePoint now) const {
    const auto silent = liveness_.FindSilent(now);
    return silent ? silent->peer : -1;
  }

  const Liveness::TimePoint start_{seconds(1000)};
  Liveness liveness_{kTimeout};
};

TEST_F(LivenessTest, LooksFourTimesInATimeOut) {
  EXPECT_EQ(liveness_.interval(), seconds(2));
  EXPECT_EQ(liveness_.timeout(), kTimeout);
  EXPECT_EQ(liveness_.silence_max(), milliseconds(7500));
}

TEST_F(LivenessTest, WhoeverIsNotWatchedIsNotMissed) {
  EXPECT_EQ(Silent(start_ + seconds(100)), -1);
  liveness_.Heard(1, start_);  // nor watched from now on
  EXPECT_EQ(Silent(start_ + seconds(100)), -1);
}

TEST_F(LivenessTest, SilenceIsCountedFromTheLastSign) {
  liveness_.Watch(1, start_);
  EXPECT_EQ(Silent(start_ + seconds(7)), -1);
  EXPECT_EQ(Silent(start_ + milliseconds(7499)), -1);
  EXPECT_EQ(Silent(start_ + milliseconds(7500)), 1);
  liveness_.Heard(1, start_ + seconds(7));
  EXPECT_EQ(Silent(start_ + seconds(14)), -1);
  EXPECT_EQ(Silent(start_ + seconds(15)), 1);
  EXPECT_EQ(liveness_.FindSilent(start_ + seconds(17))->duration, seconds(10));
}

TEST_F(LivenessTest, TheNextCheckIsWhenTheFirstBecomesSilent) {
  EXPECT_EQ(liveness_.UntilNextCheck(start_), seconds(2));
  liveness_.Watch(1, start_);
  liveness_.Watch(2, start_ + seconds(1));
  EXPECT_EQ(liveness_.UntilNextCheck(start_ + seconds(4)), seconds(2));
  EXPECT_EQ(liveness_.UntilNextCheck(start_ + seconds(6)), milliseconds(1500));
  liveness_.Heard(1, start_ + seconds(6));
  EXPECT_EQ(liveness_.UntilNextCheck(start_ + seconds(7)), milliseconds(1500));
  // Never at once, or a silence that does not end would take a core.
  EXPECT_GT(liveness_.UntilNextCheck(start_ + seconds(60)), milliseconds(10));
}

TEST_F(LivenessTest, TheLongestSilenceIsNamed) {
  liveness_.Watch(1, start_ + seconds(2));
  liveness_.Watch(2, start_ + seconds(1));
  liveness_.Watch(3, start_ + seconds(3));
  EXPECT_EQ(Silent(start_ + seconds(20)), 2);
  liveness_.Forget(2);
  EXPECT_EQ(Silent(start_ + seconds(20)), 1);
}

TEST_F(LivenessTest, AProcessThatStoodStillBlamesNobody) {
  liveness_.Watch(1, start_);
  liveness_.Watch(2, start_);
  const auto now = start_ + seconds(60);
  liveness_.Restart(now);
  EXPECT_EQ(Silent(now), -1);
  EXPECT_EQ(Silent(now + seconds(7)), -1);
  liveness_.Heard(1, now + seconds(7));
  EXPECT_EQ(Silent(now + seconds(8)), 2);
}

}  // namespace
}  // namespace troupe::actors
