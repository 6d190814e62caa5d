// Tests two and more nodes, whose actors record the messages that they receive.

#include "actors/sim/simulated_network.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// The messages that an actor received, and the number of peers that it lost.
struct Heard {
  std::vector<int> numbers;
  int lost = 0;
};

class SimulatedNetworkTest : public testing::Test {
 protected:
  // Makes the nodes; actor i belongs to node i.
  void SetUp(const std::string& plan, std::uint64_t seed = 1, int nodes = 3) {
    system_ = std::make_unique<caf::actor_system>(config_);
    scheduler_ = std::make_unique<SeededScheduler>(
        *system_, SeededScheduler::Options{seed, absl::ZeroDuration()});
    SimulatedNetworkOptions options;
    options.nodes = nodes;
    options.plan = *ParseFaultPlan(plan);
    network_ = std::make_unique<SimulatedNetwork>(*system_, *scheduler_,
                                                  std::move(options));
    heard_.assign(nodes, Heard());
    for (int node = 0; node < nodes; ++node) {
      actors_.push_back(network_->Spawn(node, [&] {
        return system_->spawn(
            [](caf::event_based_actor* self, Heard* heard) -> caf::behavior {
              self->set_down_handler([=](caf::down_msg&) { ++heard->lost; });
              return {
                  [=](int number) { heard->numbers.push_back(number); },
                  [=](const caf::actor& other) { self->monitor(other); },
              };
            },
            &heard_[node]);
      }));
    }
  }
  void TearDown() override {
    network_->Thaw();
    for (const caf::actor& actor : actors_) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
    Run();
    actors_.clear();
    network_.reset();
    scheduler_.reset();
    system_.reset();
  }
  void Send(int from, int to, int number) {
    caf::anon_send(network_->SeenFrom(from, actors_[to]), number);
  }
  void Monitor(int from, int to) {
    caf::anon_send(actors_[from], network_->SeenFrom(from, actors_[to]));
    Run();
  }
  // Runs until only timers are left.
  void Run() {
    for (int i = 0; i < 1000; ++i) {
      if (scheduler_->idle()) return;
      scheduler_->Step();
    }
  }
  void RunTimers() {
    while (scheduler_->Step()) {
    }
  }

  SimulatedConfig config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<SeededScheduler> scheduler_;
  std::unique_ptr<SimulatedNetwork> network_;
  std::vector<Heard> heard_;
  std::vector<caf::actor> actors_;
};

using Values = std::vector<int>;

TEST_F(SimulatedNetworkTest, APairKeepsItsOrderAndOthersDoNot) {
  std::set<Values> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SetUp("delay 1s", seed);
    for (int i = 0; i < 4; ++i) Send(1, 0, i);
    for (int i = 10; i < 14; ++i) Send(2, 0, i);
    RunTimers();
    ASSERT_EQ(heard_[0].numbers.size(), 8u);
    Values of_1, of_2;
    for (const int i : heard_[0].numbers) (i < 10 ? of_1 : of_2).push_back(i);
    EXPECT_EQ(of_1, (Values{0, 1, 2, 3}));
    EXPECT_EQ(of_2, (Values{10, 11, 12, 13}));
    orders.insert(heard_[0].numbers);
    if (seed < 49) TearDown();
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST_F(SimulatedNetworkTest, ACutHoldsMessagesBackUntilItHeals) {
  SetUp("cut 0-1 at 2 for 3s");
  for (int i = 0; i < 3; ++i) Send(1, 0, i);
  Send(2, 0, 7);
  Run();
  EXPECT_EQ(network_->sent(), 4);
  EXPECT_EQ(heard_[0].numbers, (Values{7}));
  RunTimers();
  EXPECT_EQ(heard_[0].numbers, (Values{7, 0, 1, 2}));
}

TEST_F(SimulatedNetworkTest, APausedNodeRunsLater) {
  SetUp("pause 0 at 1 for 3s");
  Send(1, 0, 1);
  Send(1, 2, 2);
  const auto start = scheduler_->now();
  Run();
  EXPECT_EQ(heard_[2].numbers, (Values{2}));
  RunTimers();
  EXPECT_EQ(heard_[0].numbers, (Values{1}));
  EXPECT_EQ(scheduler_->now() - start, std::chrono::seconds(3));
}

TEST_F(SimulatedNetworkTest, AKilledNodeIsHeardOfAndOneWithoutPowerIsNot) {
  for (const bool heard : {false, true}) {
    SetUp(heard ? "die 1 at 1 heard" : "die 1 at 1");
    Monitor(0, 1);
    Monitor(2, 1);
    Send(0, 2, 1);
    RunTimers();
    EXPECT_TRUE(network_->is_gone(1));
    EXPECT_EQ(heard_[0].lost, heard ? 1 : 0);
    EXPECT_EQ(heard_[2].lost, heard ? 1 : 0);
    Send(0, 1, 5);
    RunTimers();
    EXPECT_EQ(heard_[1].numbers, Values());
    if (!heard) TearDown();
  }
}

TEST_F(SimulatedNetworkTest, AResetIsHeardOfAtBothEnds) {
  SetUp("reset 0-1 at 3");
  Monitor(0, 1);
  Monitor(1, 0);
  Monitor(2, 0);
  for (int i = 0; i < 3; ++i) Send(0, 1, i);
  Send(0, 1, 4);
  RunTimers();
  EXPECT_EQ(heard_[0].lost, 1);
  EXPECT_EQ(heard_[1].lost, 1);
  EXPECT_EQ(heard_[2].lost, 0);
  EXPECT_EQ(heard_[1].numbers, Values()) << "what was under way is lost";
}

TEST_F(SimulatedNetworkTest, TheEndOfAnActorIsHeardElsewhere) {
  SetUp("delay 0");
  Monitor(0, 1);
  caf::anon_send_exit(actors_[1], caf::exit_reason::user_shutdown);
  RunTimers();
  EXPECT_EQ(heard_[0].lost, 1);
}

}  // namespace
}  // namespace troupe::actors
