#include "actors/cluster/control_client.h"

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/coordinator.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(50);

struct ClientConfig : caf::actor_system_config {
  ClientConfig() {
    AddClusterMessageTypes(*this);
    set("scheduler.max-threads", 2u);
  }
};

// Clients of one process; the coordinator is a neighbour.
class ControlClientTest : public testing::Test {
 protected:
  void SetUp() override {
    ClusterOptions options;
    options.processes = 2;
    coordinator_ = system_.spawn(CoordinatorBehavior, options,
                                 std::make_shared<absl::Notification>(),
                                 static_cast<TraceSink*>(nullptr));
  }
  void TearDown() override {
    caf::anon_send_exit(coordinator_, caf::exit_reason::kill);
  }
  void FailTheJob(const absl::Status& why) {
    caf::anon_send(coordinator_, ToMessage(/*generation=*/0, why));
  }

  ClientConfig config_;
  caf::actor_system system_{config_};
  CoordinatorActor coordinator_;
};

TEST_F(ControlClientTest, WhatOneSetsAnotherGets) {
  ControlClient a(system_, coordinator_), b(system_, coordinator_);
  ASSERT_EQ(a.Set("data/1", "first"), absl::OkStatus());
  EXPECT_EQ(*a.Get("data/1", kAnswerTimeout), "first");
  EXPECT_EQ(*b.Get("data/1", kAnswerTimeout), "first");
  ASSERT_EQ(b.Set("data/1", "second"), absl::OkStatus());
  EXPECT_EQ(*b.Get("data/1", kAnswerTimeout), "second");
}

TEST_F(ControlClientTest, WhoeverAsksTooEarlyWaits) {
  ControlClient early(system_, coordinator_), late(system_, coordinator_);
  absl::StatusOr<std::string> got;
  std::thread asking([&] { got = early.Get("data/1", kAnswerTimeout); });
  EXPECT_EQ(late.Get("data/1", kShort).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  ASSERT_EQ(late.Set("data/1", "here"), absl::OkStatus());
  asking.join();
  EXPECT_EQ(*got, "here");
}

TEST_F(ControlClientTest, AKeyThatNobodySetsIsNamed) {
  ControlClient client(system_, coordinator_);
  ASSERT_EQ(client.Set("data/1", "here"), absl::OkStatus());
  EXPECT_EQ(client.Get("dato/1", kShort).status(),
            absl::DeadlineExceededError(
                "dato/1: no answer within 50ms; see what process 0 says"));
  EXPECT_EQ(client.Get("dato/2", absl::ZeroDuration()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // The late answer to that request is not taken for another's.
  ControlClient(system_, coordinator_).Set("dato/1", "late").IgnoreError();
  EXPECT_EQ(*client.Get("data/1", kAnswerTimeout), "here");
}

TEST_F(ControlClientTest, AFailureEndsAllCallsNowAndLater) {
  ControlClient waiting(system_, coordinator_);
  ControlClient idle(system_, coordinator_);
  EXPECT_EQ(idle.Check(), absl::OkStatus());
  EXPECT_EQ(idle.Check(), absl::OkStatus());
  absl::Status got;
  std::thread asking(
      [&] { got = waiting.Get("data/1", kAnswerTimeout).status(); });
  const absl::Status why = absl::DataLossError("the disk is gone");
  FailTheJob(why);
  asking.join();
  EXPECT_EQ(got, why);
  // A client that does not wait gets the refusal in one of its next Check().
  const absl::Time deadline = absl::Now() + kAnswerTimeout;
  while (idle.Check().ok() && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(idle.Check(), why);
  EXPECT_EQ(idle.refused(), why);
  EXPECT_EQ(idle.Get("data/1", kAnswerTimeout).status(), why);
  EXPECT_EQ(idle.Set("data/1", "x"), why);
  EXPECT_EQ(idle.AwaitSupervisor(1, kAnswerTimeout).status(), why);
  EXPECT_EQ(idle.Join(Join(), kAnswerTimeout).status(), why);
}

TEST_F(ControlClientTest, WhoeverGivesUpIsNotHeldUp) {
  const auto give_up = std::make_shared<absl::Notification>();
  ControlClient client(system_, coordinator_, give_up);
  EXPECT_EQ(client.Check(), absl::OkStatus());
  std::thread giving_up([&] { give_up->Notify(); });
  EXPECT_EQ(client.Get("data/1", kAnswerTimeout).status().code(),
            absl::StatusCode::kCancelled);
  giving_up.join();
  EXPECT_EQ(client.Check().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(client.Join(Join(), kAnswerTimeout).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ControlClientTest, AWelcomeToAnotherIsNotTaken) {
  ControlClient client(system_, coordinator_);
  Welcome other, mine;
  other.nonce = 1;
  mine.nonce = 2;
  mine.plan = "mine";
  const auto to = caf::actor_cast<caf::actor>(client.address());
  caf::anon_send(to, other);
  caf::anon_send(to, mine);
  Join join;
  join.nonce = 2;
  join.processes = 2;
  EXPECT_EQ(client.Join(join, kAnswerTimeout)->plan, "mine");
}

TEST_F(ControlClientTest, TooLongAValueEndsTheJobInWords) {
  ControlClient client(system_, coordinator_);
  ASSERT_EQ(client.Set("key", std::string(5000, 'x')), absl::OkStatus());
  const absl::Status status = client.Get("key", kAnswerTimeout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(), "the store takes "));
}

}  // namespace
}  // namespace troupe::actors
