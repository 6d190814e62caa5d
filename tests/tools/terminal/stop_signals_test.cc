#include "tools/trainer/terminal/stop_signals.h"

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

// Lowers a limit of this process for the lifetime of the object.
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

// A clock that only tests advance.
std::atomic<std::int64_t> now_ms{1'000};
std::int64_t TestClock() { return now_ms; }

void ExpectRefused(const absl::Status& status, const char* why) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      testing::AllOf(testing::StartsWith("cannot wait for Ctrl-C: "),
                     testing::HasSubstr(why), testing::HasSubstr("ulimit -u")));
}

// The limit on address space refuses the thread's stack. This test is the first
// one, since stacks of threads that have ended would be reused.
TEST(StopSignals, ARefusedThreadIsAnErrorThatSaysWhatToDo) {
  absl::Status status;
  {
    const LimitOf memory(RLIMIT_AS, 0);
    status = StopSignals::Start([](int) {}).status();
  }
  ExpectRefused(status, "Resource temporarily unavailable");
  // The failed attempt left no state behind.
  EXPECT_TRUE(StopSignals::Start([](int) {}).ok());
}

TEST(StopSignals, CallsOnTheFirstSignal) {
  for (const int signal :
       {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGPIPE}) {
    absl::Notification called;
    int first = 0;
    auto signals = StopSignals::Start([&](int seen) {
      first = seen;
      called.Notify();
    });
    ASSERT_TRUE(signals.ok()) << signals.status();
    raise(signal);
    called.WaitForNotification();
    EXPECT_EQ(first, signal);
  }
}

// A second call would notify twice, which ends the process.
TEST(StopSignals, OtherSignalsThanCtrlCMayComeTwice) {
  absl::Notification called;
  auto signals = StopSignals::Start([&](int) { called.Notify(); });
  ASSERT_TRUE(signals.ok()) << signals.status();
  for (const int signal :
       {SIGINT, SIGTERM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGPIPE}) {
    raise(signal);
  }
  called.WaitForNotification();
}

TEST(StopSignalsDeathTest, CtrlCAfterAnySignalEndsTheProcess) {
  for (const int signal :
       {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGPIPE}) {
    EXPECT_EXIT(
        {
          auto signals = StopSignals::Start([](int) {}, TestClock);
          raise(signal);
          now_ms += StopSignals::kTogetherMs + 1;
          raise(SIGINT);
        },
        testing::ExitedWithCode(kExitAtOnce), "");
  }
}

// `timeout -s INT` sends it to its child and to the child's group.
TEST(StopSignals, CtrlCTwiceAtOnceIsOne) {
  for (const int signal : {SIGINT, SIGTERM}) {
    absl::Notification called;
    auto signals = StopSignals::Start([&](int) { called.Notify(); }, TestClock);
    ASSERT_TRUE(signals.ok()) << signals.status();
    raise(signal);
    raise(SIGINT);
    now_ms += StopSignals::kTogetherMs;
    raise(SIGINT);
    called.WaitForNotification();
  }
}

TEST(StopSignals, TheSteadyClockGoesOn) {
  const std::int64_t start_ms = SteadyMilliseconds();
  EXPECT_GT(start_ms, 0);
  while (SteadyMilliseconds() < start_ms + 2) {
  }
  EXPECT_LT(SteadyMilliseconds(), start_ms + 3'600'000);
}

TEST(StopSignals, WithoutASignalNothingIsCalled) {
  EXPECT_TRUE(StopSignals::Start([](int) { FAIL() << "called"; }).ok());
}

// Sets the handling of a signal for the lifetime of the object.
class HandlingOf {
 public:
  HandlingOf(int number, void (*handler)(int))
      : number_(number), before_(signal(number, handler)) {}
  ~HandlingOf() { signal(number_, before_); }

 private:
  const int number_;
  void (*const before_)(int);
};

TEST(StopSignals, UnderNohupAClosedTerminalIsNothing) {
  const HandlingOf ignored(SIGHUP, SIG_IGN);
  auto signals = StopSignals::Start([](int) { FAIL() << "called"; });
  ASSERT_TRUE(signals.ok()) << signals.status();
  raise(SIGHUP);
}

TEST(StopSignals, AfterwardsSignalsAreHandledAsBefore) {
  const HandlingOf ignored(SIGPIPE, SIG_IGN);
  EXPECT_TRUE(StopSignals::Start([](int) {}).ok());
  struct sigaction now = {};
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(StopSignals, ARefusedPipeIsAnErrorThatSaysWhatToDo) {
  const LimitOf files(RLIMIT_NOFILE, 0);
  ExpectRefused(StopSignals::Start([](int) {}).status(), "Too many open files");
}

}  // namespace
}  // namespace troupe::tools
