#include "base/event.h"

#include <memory>
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

class Number : public EventOrigin {
 public:
  explicit Number(int value) : value(value) {}
  const int value;
};

int NumberOf(const Event& event) {
  const auto origin = event.origin();
  return origin == nullptr ? 0
                           : static_cast<const Number*>(origin.get())->value;
}

TEST(Event, IsKnownByItsOriginBeforeItIsReady) {
  const Event event = Event::Make();
  int known = 0;
  event.OnKnown([&] { ++known; });
  EXPECT_EQ(event.origin(), nullptr);
  EXPECT_EQ(known, 0);
  event.SetOrigin(std::make_shared<Number>(7));
  event.SetOrigin(std::make_shared<Number>(8));
  EXPECT_EQ(NumberOf(event), 7);
  EXPECT_FALSE(event.ready());
  EXPECT_EQ(known, 1);
  event.OnKnown([&] { ++known; });
  EXPECT_EQ(known, 2);
  event.Complete(absl::OkStatus());
  EXPECT_EQ(known, 2);
}

TEST(Event, IsKnownWhenTheHostCompletesIt) {
  const Event event = Event::Make();
  int known = 0;
  event.OnKnown([&] { ++known; });
  event.Complete(absl::CancelledError("x"));
  EXPECT_EQ(known, 1);
  EXPECT_EQ(event.origin(), nullptr);
  Event().OnKnown([&] { ++known; });
  EXPECT_EQ(known, 2);
}

TEST(Event, FollowsAnother) {
  const Event first = Event::Make(), second = Event::Make();
  second.Follow(first);
  first.SetOrigin(std::make_shared<Number>(3));
  EXPECT_EQ(NumberOf(second), 3);
  EXPECT_FALSE(second.ready());
  first.Complete(absl::CancelledError("x"));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kCancelled);

  const Event late = Event::Make();
  late.Follow(first);
  EXPECT_EQ(NumberOf(late), 3);
  EXPECT_TRUE(late.ready());
}

}  // namespace
}  // namespace troupe::base
