#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/caf/caf.h"
#include "actors/cluster/coordinator.h"
#include "caf/scheduler/test_coordinator.hpp"
#include "caf/scoped_actor.hpp"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

struct DeadlineConfig : caf::actor_system_config {
  DeadlineConfig() {
    AddClusterMessageTypes(*this);
    set("scheduler.policy", caf::atom("testing"));
  }
};

// A coordinator in virtual time, whose process 0 has joined.
class JoinDeadlineTest : public ::testing::Test {
 protected:
  using Scheduler = caf::scheduler::test_coordinator;

  void SetUp() override {
    ClusterOptions options;
    options.processes = 2;
    options.join_timeout = absl::Seconds(3);
    options.liveness_timeout = absl::Seconds(8);  // a beat every two seconds
    coordinator_ = system_.spawn(CoordinatorBehavior, options, gone_, nullptr);
    Join join;
    join.member.host = "here";
    join.processes = options.processes;
    join.version = "1";
    self_->send(coordinator_, join);
    scheduler_.run();
  }

  void TearDown() override {
    caf::anon_send_exit(coordinator_, caf::exit_reason::user_shutdown);
    scheduler_.run();
  }

  void Advance(std::chrono::milliseconds time) {
    scheduler_.advance_time(time);
    scheduler_.run();
  }

  // Returns the refusal that process 0 has received, if any.
  std::optional<std::string> Refusal() {
    std::optional<std::string> message;
    self_->receive([&](const Refused& refused) { message = refused.message; },
                   caf::after(std::chrono::seconds(0)) >> [] {});
    return message;
  }

  DeadlineConfig config_;
  caf::actor_system system_{config_};
  Scheduler& scheduler_ = dynamic_cast<Scheduler&>(system_.scheduler());
  caf::scoped_actor self_{system_};
  CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  CoordinatorActor coordinator_;
};

TEST_F(JoinDeadlineTest, EndsAtTheDeadlineNotAtTheNextBeat) {
  Advance(std::chrono::milliseconds(2000));
  Advance(std::chrono::milliseconds(999));
  EXPECT_EQ(Refusal(), std::nullopt);
  Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(Refusal(),
            "process 1 did not join within 3s; see the output there");
}

TEST_F(JoinDeadlineTest, NobodyWaitsForThoseThatDidNotCome) {
  Advance(std::chrono::milliseconds(2000));
  Advance(std::chrono::milliseconds(1000));
  EXPECT_FALSE(gone_->HasBeenNotified());
  self_->send(coordinator_, JobEnded());
  scheduler_.run();
  EXPECT_TRUE(gone_->HasBeenNotified());
}

}  // namespace
}  // namespace troupe::actors
