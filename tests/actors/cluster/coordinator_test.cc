// The coordinator accepts signs of life, farewells and traces only from the
// process itself, not from a stranger with its number. Virtual time.

#include "actors/cluster/coordinator.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/trace_share.h"
#include "actors/protocol/strand_guard.h"
#include "actors/sim/seeded_scheduler.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

struct CoordinatorConfig : SimulatedConfig {
  CoordinatorConfig() { AddClusterMessageTypes(*this); }
};

class Traced : public TraceSink {
 public:
  bool Wants(std::int64_t) const override { return true; }
  void Record(const TraceEvent&) override {}
  void Add(std::vector<StampedEvent> events) override {
    for (const StampedEvent& each : events) names.push_back(each.event.name);
  }

  std::vector<std::string> names;
};

// The messages that an actor which stands for a process has received.
struct Heard {
  std::vector<Refused> refused;
  std::vector<JobEnded> ended;
  std::vector<std::string> values;  // values of the keys it asked for
  int welcomes = 0;
};

class CoordinatorTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.processes = 2;
    options_.liveness_timeout = absl::Seconds(4);
    coordinator_ =
        system_.spawn(CoordinatorBehavior, options_, gone_, &traced_);
    for (Heard& heard : heard_) actors_.push_back(Spawn(&heard));
    Send(0, JoinOf(0));
    Send(1, JoinOf(1));
    Welcome offer;
    offer.generation = 1;
    caf::anon_send(coordinator_, offer);
    Settle();
    ASSERT_EQ(heard_[1].welcomes, 2);  // as an agent, and as one that joins
  }
  void TearDown() override {
    for (const caf::actor& actor : actors_) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
    caf::anon_send_exit(coordinator_, caf::exit_reason::kill);
    Settle();
  }

  caf::actor Spawn(Heard* heard) {
    return system_.spawn(
        [](caf::event_based_actor* self, Heard* heard) -> caf::behavior {
          self->set_default_handler(caf::drop);
          return {[=](const Refused& refused) {
                    heard->refused.push_back(refused);
                  },
                  [=](const JobEnded& ended) { heard->ended.push_back(ended); },
                  [=](const KeyValue& each) {
                    heard->values.push_back(each.value);
                  },
                  [=](const Welcome&) { ++heard->welcomes; }};
        },
        heard);
  }
  Join JoinOf(int process) const {
    Join join;
    join.member.process = process;
    join.member.host = "here";
    join.member.pid = 100 + process;
    if (process > 0) {
      join.agent = caf::actor_cast<caf::strong_actor_ptr>(actors_[process]);
    }
    join.processes = 2;
    join.version = "0.1";
    return join;
  }
  template <typename Message>
  void Send(int from, Message message) {
    caf::send_as(actors_[from], coordinator_, std::move(message));
  }
  // Runs all actors until none has a message left.
  void Settle() {
    while (!scheduler_.idle()) scheduler_.Step();
  }
  // Lets the coordinator's beats pass; calls `at_each` before each.
  template <typename Function>
  void PassBeats(int beats, Function at_each) {
    for (int i = 0; i < beats; ++i) {
      at_each();
      Settle();
      scheduler_.Step();
      Settle();
    }
  }

  CoordinatorConfig config_;
  caf::actor_system system_{config_};
  SeededScheduler scheduler_{system_, {/*seed=*/1}};
  ClusterOptions options_;
  CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  Traced traced_;
  CoordinatorActor coordinator_;
  // Process 0, process 1, and a stranger.
  Heard heard_[3];
  std::vector<caf::actor> actors_;
};

TEST_F(CoordinatorTest, SignsOfLifeKeepAProcess) {
  PassBeats(12, [&] { Send(1, Heartbeat{1, 1, 0, 0}); });
  Send(1, GetKey{"nobody sets it"});
  Settle();
  EXPECT_TRUE(heard_[1].refused.empty());
}

TEST_F(CoordinatorTest, TheSignsOfAStrangerKeepNobodyAlive) {
  PassBeats(12, [&] { Send(2, Heartbeat{0, 1, 0, 0}); });
  Send(1, GetKey{"nobody sets it"});
  Settle();
  ASSERT_EQ(heard_[1].refused.size(), 1u);
  EXPECT_TRUE(absl::StrContains(heard_[1].refused[0].message,
                                "process 1 (here, pid 101, rank 1) has given "
                                "no sign of life for 3.7s"))
      << heard_[1].refused[0].message;
}

// Regression test for a bug found by simulation: process 0 was stopped, the
// others took it for lost and left, and process 0 then blamed them.
TEST_F(CoordinatorTest, ItsOwnPauseIsNotBlamedOnThoseWhoLeft) {
  const std::uint64_t id = coordinator_->id();
  scheduler_.RunOnly([=](std::uint64_t actor) { return actor != id; });
  caf::delayed_anon_send(actors_[2], std::chrono::seconds(10), 0);
  const auto end = scheduler_.now() + std::chrono::seconds(10);
  while (scheduler_.now() < end) scheduler_.Step();
  caf::anon_send_exit(actors_[1], caf::exit_reason::kill);
  scheduler_.RunOnly(nullptr);
  Send(0, GetKey{"nobody sets it"});
  Settle();
  ASSERT_EQ(heard_[0].refused.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(heard_[0].refused[0].message,
                               "process 0 (here, pid 100, rank 0) stood still "
                               "for 10"))
      << heard_[0].refused[0].message;
  EXPECT_TRUE(absl::StrContains(heard_[0].refused[0].message,
                                "process 1 (here, pid 101, rank 1) is gone"));
}

TEST_F(CoordinatorTest, WhoeverIsGoneIsBlamedOtherwise) {
  PassBeats(12, [&] { Send(1, Heartbeat{1, 1, 0, 0}); });
  caf::anon_send_exit(actors_[1], caf::exit_reason::kill);
  Settle();
  Send(0, GetKey{"nobody sets it"});
  Settle();
  ASSERT_EQ(heard_[0].refused.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(heard_[0].refused[0].message,
                               "process 1 (here, pid 101, rank 1) is gone"))
      << heard_[0].refused[0].message;
}

TEST_F(CoordinatorTest, AStrangerIsRefusedAndEndsNothing) {
  Join join = JoinOf(1);
  join.agent = caf::actor_cast<caf::strong_actor_ptr>(actors_[2]);
  join.member.pid = 666;
  Send(2, join);
  Send(2, MakeFailure(0, /*rank=*/-1, "", absl::InternalError("a stranger's")));
  Send(1, GetKey{"nobody sets it"});
  Settle();
  ASSERT_EQ(heard_[2].refused.size(), 1u);
  EXPECT_TRUE(absl::StrContains(heard_[2].refused[0].message,
                                "two processes come with number 1"));
  EXPECT_TRUE(heard_[1].refused.empty());
}

TEST_F(CoordinatorTest, TracesAndFarewellsAreThoseOfProcesses) {
  StampedEvent event;
  for (const int from : {2, 1}) {
    event.event.name = from == 1 ? "ours" : "theirs";
    const std::string text = EncodeEvents({event}).front();
    Send(from, TraceShare{1, 1, text});
    Send(from, TraceShare{7, 1, text});  // generation of an earlier attempt
    Send(from, TraceShare{1, 1, "nonsense"});
  }
  caf::anon_send(coordinator_, ToMessage(1, JobResult()));
  Send(2, Farewell{0, 1});
  Send(2, Farewell{1, 1});
  Settle();
  EXPECT_EQ(traced_.names, std::vector<std::string>{"ours"});
  EXPECT_FALSE(gone_->HasBeenNotified());
  Send(1, Farewell{1, 1});
  Settle();
  EXPECT_TRUE(gone_->HasBeenNotified());
}

TEST_F(CoordinatorTest, TheStoreHasLimits) {
  Send(1, SetKey{"key", std::string(4096 - 3, 'x')});
  Send(1, GetKey{"key"});
  Settle();
  EXPECT_TRUE(heard_[1].refused.empty());
  Send(1, SetKey{"key", std::string(4096 - 2, 'x')});
  Send(1, GetKey{"key"});
  Settle();
  ASSERT_EQ(heard_[1].refused.size(), 1u);
  EXPECT_EQ(heard_[1].refused[0].message,
            "the store takes 131072 keys of 4096 bytes each; it has 1 and "
            "got one of 4097 bytes; start fewer processes");
  EXPECT_EQ(heard_[1].refused[0].code,
            static_cast<int>(absl::StatusCode::kResourceExhausted));
}

// A full store takes another value for a key that it has, but no other key.
TEST_F(CoordinatorTest, AFullStoreTakesNewValuesOfItsKeys) {
  constexpr int kKeysMax = 1 << 17;
  for (int key = 0; key < kKeysMax; ++key) {
    Send(1, SetKey{std::to_string(key), "old"});
  }
  Send(1, SetKey{"0", "new"});
  Send(1, GetKey{"0"});
  Settle();
  EXPECT_TRUE(heard_[1].refused.empty());
  EXPECT_EQ(heard_[1].values, std::vector<std::string>{"new"});
  Send(1, SetKey{"one too many", ""});
  Send(1, GetKey{"0"});
  Settle();
  ASSERT_EQ(heard_[1].refused.size(), 1u);
  EXPECT_EQ(heard_[1].refused[0].message,
            "the store takes 131072 keys of 4096 bytes each; it has 131072 "
            "and got one of 12 bytes; start fewer processes");
}

}  // namespace
}  // namespace troupe::actors
