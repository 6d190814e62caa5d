// Tests a channel whose deliveries and timers are recorded: the item of the
// actor number n stands for message n.

#include "actors/sim/simulated_channel.h"

#include <vector>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

constexpr int kEnd = -1;  // the end of the connection

class SimulatedChannelTest : public testing::Test {
 protected:
  SimulatedChannel::Ends Ends() {
    SimulatedChannel::Ends ends;
    ends.may_deliver = [this] { return may_deliver_; };
    ends.deliver = [this](const SimulatedChannel::Item& item) {
      delivered_.push_back(item.ended ? static_cast<int>(*item.ended) : kEnd);
    };
    ends.wake_in = [this](absl::Duration time) { timers_.push_back(time); };
    return ends;
  }
  void Push(int number, absl::Duration delay = absl::ZeroDuration()) {
    SimulatedChannel::Item item;
    item.ended = number;
    channel_.Push(std::move(item), delay);
  }
  void Close(bool drop) {
    channel_.Close(make_error(caf::exit_reason::remote_link_unreachable), drop);
  }
  // Moves time by a timer of the system, as the network does.
  void Wait(absl::Duration time) {
    caf::actor timer = system_.spawn<caf::hidden>(
        [this](caf::event_based_actor* self) -> caf::behavior {
          return {[this, self](int) {
            channel_.Wake();
            self->quit();
          }};
        });
    caf::delayed_anon_send(timer, absl::ToChronoNanoseconds(time), 0);
    timer = nullptr;
    Run();
  }
  void Run() {
    while (scheduler_.Step()) {
    }
  }

  SimulatedConfig config_;
  caf::actor_system system_{config_};
  SeededScheduler scheduler_{system_, {/*seed=*/1, absl::ZeroDuration()}};
  bool may_deliver_ = true;
  std::vector<int> delivered_;
  std::vector<absl::Duration> timers_;
  SimulatedChannel channel_{system_.next_actor_id(), scheduler_, Ends()};
};

using Values = std::vector<int>;

TEST_F(SimulatedChannelTest, ALateItemHoldsBackThoseBehindIt) {
  Push(1, absl::Seconds(3));
  Push(2);
  EXPECT_EQ(timers_,
            (std::vector<absl::Duration>{absl::Seconds(3), absl::Seconds(3)}));
  Run();
  EXPECT_EQ(delivered_, Values());
  Wait(absl::Seconds(2));
  EXPECT_EQ(delivered_, Values());
  Wait(absl::Seconds(1));
  EXPECT_EQ(delivered_, (Values{1, 2}));
}

TEST_F(SimulatedChannelTest, EachCutMustHeal) {
  channel_.Cut();
  channel_.Cut();
  Push(1);
  channel_.Heal();
  Run();
  EXPECT_EQ(delivered_, Values());
  channel_.Heal();
  Run();
  EXPECT_EQ(delivered_, (Values{1}));
}

TEST_F(SimulatedChannelTest, APausedReceiverGetsItemsLater) {
  may_deliver_ = false;
  Push(1);
  Run();
  EXPECT_EQ(delivered_, Values());
  may_deliver_ = true;
  channel_.Wake();
  Run();
  EXPECT_EQ(delivered_, (Values{1}));
}

TEST_F(SimulatedChannelTest, TheEndIsTheLastItem) {
  Push(1);
  Close(/*drop=*/false);
  Push(2);
  Close(/*drop=*/false);
  EXPECT_TRUE(channel_.closed());
  Run();
  EXPECT_EQ(delivered_, (Values{1, kEnd}));
}

TEST_F(SimulatedChannelTest, AResetLosesWhatIsUnderWay) {
  Push(1, absl::Seconds(3));
  Close(/*drop=*/true);
  Run();
  EXPECT_EQ(delivered_, (Values{kEnd}));
}

TEST_F(SimulatedChannelTest, ADeadNodeSendsNoEnd) {
  Push(1);
  channel_.Drop();
  EXPECT_TRUE(channel_.closed());
  Run();
  EXPECT_EQ(delivered_, Values());
}

}  // namespace
}  // namespace troupe::actors
