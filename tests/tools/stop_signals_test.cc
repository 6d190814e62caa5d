#include "tools/trainer/stop_signals.h"

#include <signal.h>
#include <sys/resource.h>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

// Lowers a limit of this process for as long as it lives.
class LimitOf {
 public:
  LimitOf(__rlimit_resource resource, rlim_t value) : resource_(resource) {
    EXPECT_EQ(getrlimit(resource_, &before_), 0);
    rlimit lower = before_;
    lower.rlim_cur = value;
    EXPECT_EQ(setrlimit(resource_, &lower), 0);
  }
  ~LimitOf() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }

 private:
  const __rlimit_resource resource_;
  rlimit before_;
};

void ExpectRefused(const absl::Status& status, const char* why) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      testing::AllOf(testing::StartsWith("cannot wait for Ctrl-C: "),
                     testing::HasSubstr(why), testing::HasSubstr("ulimit -u")));
}

// A thread's stack is address space. Comes first: stacks of threads that ended
// would be used again.
TEST(StopSignals, ARefusedThreadIsAnErrorThatSaysWhatToDo) {
  absl::Status status;
  {
    const LimitOf memory(RLIMIT_AS, 0);
    status = StopSignals::Start([] {}).status();
  }
  ExpectRefused(status, "Resource temporarily unavailable");
  // Nothing is left of the attempt.
  EXPECT_TRUE(StopSignals::Start([] {}).ok());
}

TEST(StopSignals, CallsOnTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    absl::Notification called;
    auto signals = StopSignals::Start([&called] { called.Notify(); });
    ASSERT_TRUE(signals.ok()) << signals.status();
    raise(signal);
    called.WaitForNotification();
  }
}

TEST(StopSignalsDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        auto signals = StopSignals::Start([] {});
        raise(SIGINT);
        raise(SIGTERM);
      },
      testing::ExitedWithCode(130), "");
}

TEST(StopSignals, WithoutASignalNothingIsCalled) {
  EXPECT_TRUE(StopSignals::Start([] { FAIL() << "called"; }).ok());
}

TEST(StopSignals, ARefusedPipeIsAnErrorThatSaysWhatToDo) {
  const LimitOf files(RLIMIT_NOFILE, 0);
  ExpectRefused(StopSignals::Start([] {}).status(), "Too many open files");
}

}  // namespace
}  // namespace troupe::tools
