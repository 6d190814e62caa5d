#include "base/event.h"

#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(Event, IsDoneWhereNothingIsToBeDone) {
  const Event nothing;
  EXPECT_TRUE(nothing.ready());
  bool called = false;
  nothing.OnReady([&](const absl::Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
  nothing.Complete(absl::InternalError("ignored"));
  EXPECT_TRUE(nothing.status().ok());
}

TEST(Event, RunsEachCallbackOnceAndKeepsTheFirstStatus) {
  const Event event = Event::Make();
  std::string calls;
  event.OnReady([&](const absl::Status& s) { calls += "a" + s.ToString(); });
  event.OnReady([&](const absl::Status& s) { calls += " b" + s.ToString(); });
  EXPECT_FALSE(event.ready());
  EXPECT_EQ(calls, "");
  event.Complete(absl::CancelledError("x"));
  event.Complete(absl::OkStatus());
  EXPECT_EQ(event.status().code(), absl::StatusCode::kCancelled);
  event.OnReady([&](const absl::Status& s) { calls += " c" + s.ToString(); });
  EXPECT_EQ(calls, "aCANCELLED: x bCANCELLED: x cCANCELLED: x");
}

TEST(Event, ACallbackMayDropTheEventAndAddToIt) {
  Event event = Event::Make();
  bool nested = false;
  event.OnReady([&](const absl::Status&) {
    event.OnReady([&](const absl::Status&) { nested = true; });
    event = Event();
  });
  event.Complete(absl::OkStatus());
  EXPECT_TRUE(nested);
}

TEST(Event, TakesCallbacksWhileItCompletes) {
  for (int round = 0; round < 200; ++round) {
    const Event event = Event::Make();
    int calls = 0;
    std::thread other([&] { event.Complete(absl::OkStatus()); });
    event.OnReady([&](const absl::Status&) { ++calls; });
    other.join();
    EXPECT_EQ(calls, 1);
  }
}

}  // namespace
}  // namespace troupe::base
