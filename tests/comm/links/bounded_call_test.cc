#include "comm/mpi/bounded_call.h"

#include <functional>
#include <memory>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

using Signal = std::shared_ptr<absl::Notification>;

TEST(BoundedCall, ReturnsWithTheCall) {
  int calls = 0;
  EXPECT_TRUE(CallWithin([&calls] { ++calls; }, absl::InfiniteDuration()));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(
      CallWithin([&calls] { ++calls; }, absl::Minutes(1), [] { return true; }));
  EXPECT_EQ(calls, 2);
}

// A call that returns only when the test releases it.
class HangingCall : public testing::Test {
 protected:
  ~HangingCall() override {
    let_go_->Notify();
    gone_->WaitForNotification();
  }
  bool Try(absl::Duration timeout, const std::function<bool()>& goes_on) {
    return CallWithin(
        [let_go = let_go_, gone = gone_] {
          let_go->WaitForNotification();
          gone->Notify();
        },
        timeout, goes_on);
  }

  const Signal let_go_ = std::make_shared<absl::Notification>();
  const Signal gone_ = std::make_shared<absl::Notification>();
};

TEST_F(HangingCall, IsLeftBehindAfterTheTimeout) {
  EXPECT_FALSE(Try(absl::Milliseconds(1), nullptr));
}

TEST_F(HangingCall, IsLeftBehindWhenTheCallerIsToldTo) {
  int asked = 0;
  EXPECT_FALSE(Try(absl::InfiniteDuration(), [&] { return ++asked < 3; }));
  EXPECT_EQ(asked, 3);
}

// The captures of the call are destroyed with the call, not by the caller.
TEST(BoundedCall, LetsGoOfTheCallBeforeItReturns) {
  const auto held = std::make_shared<int>(1);
  EXPECT_TRUE(CallWithin([held] {}, absl::InfiniteDuration()));
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace troupe::comm::internal
