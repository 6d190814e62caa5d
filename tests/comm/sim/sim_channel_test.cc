#include "comm/sim/sim_channel.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

Frame FrameWith(const std::string& payload, std::uint64_t seq = 0) {
  Frame frame;
  frame.bytes = static_cast<std::uint32_t>(payload.size());
  frame.seq = seq;
  return frame;
}

// A callback that tests compare by its address.
struct IgnoreDone : SendDone {
  void OnSent() override {}
};

// Runs the next event of the channel.
void RunNext(SimChannel& channel, SimClock& clock, FrameSink& sink) {
  clock.AdvanceTo(channel.due());
  SimPacket& first = channel.first();
  if (first.AwaitsPlace()) {
    first.Place(sink, /*from=*/0);
    channel.Delay();
  } else {
    first.Take(sink, /*from=*/0);
    channel.Pop();
  }
}

// Receives payloads in memory of its own, or where the channel shows them.
struct Receiver : FrameSink {
  explicit Receiver(bool places) : places(places) {}

  char* Place(int, const Frame& frame) override {
    if (!places) return nullptr;
    place.resize(frame.bytes);
    return place.data();
  }
  void Take(int, const Frame& frame, const char* payload) override {
    if (places && frame.bytes > 0) payload = place.data();
    got.push_back(frame.bytes == 0 ? "" : std::string(payload, frame.bytes));
    numbers.push_back(frame.seq);
  }
  void OnLost(int, const absl::Status&) override {}

  const bool places;
  std::string place;
  std::vector<std::string> got;
  std::vector<std::uint64_t> numbers;
};

TEST(SimChannelTest, DeliversInOrderByTwoEventsEach) {
  for (const bool places : {false, true}) {
    SimClock clock(/*seed=*/5);
    SimChannel channel(&clock);
    Receiver sink(places);
    EXPECT_EQ(channel.due(), SimClock::kNever);
    const std::vector<std::string> words = {"one", "", "three"};
    for (std::uint64_t i = 0; i < 3; ++i) {
      channel.Push(FrameWith(words[i], i), words[i].data(), nullptr,
                   /*copy=*/false);
    }
    std::vector<std::size_t> counts;
    while (channel.due() != SimClock::kNever) {
      ASSERT_GT(channel.due(), clock.now());  // each event has a delay
      RunNext(channel, clock, sink);
      counts.push_back(sink.got.size());
    }
    EXPECT_EQ(counts, (std::vector<std::size_t>{0, 1, 2, 2, 3}));
    EXPECT_EQ(sink.got, words);
    EXPECT_EQ(sink.numbers, (std::vector<std::uint64_t>{0, 1, 2}));
  }
}

TEST(SimChannelTest, ReadsThePayloadWhenItIsTakenUnlessItWasCopied) {
  for (const bool copy : {false, true}) {
    SimClock clock(/*seed=*/5);
    SimChannel channel(&clock);
    Receiver sink(/*places=*/true);
    std::string payload = "early";
    channel.Push(FrameWith(payload), payload.data(), nullptr, copy);
    RunNext(channel, clock, sink);
    payload.assign("later");
    RunNext(channel, clock, sink);
    EXPECT_EQ(sink.got.back(), copy ? "early" : "later");
  }
}

TEST(SimChannelTest, WaitsWhileHeld) {
  SimClock clock(/*seed=*/5);
  SimChannel channel(&clock);
  channel.Push(Frame(), nullptr, nullptr, /*copy=*/false);
  const std::uint64_t due = channel.due();
  channel.SetHeld(true);
  EXPECT_EQ(channel.due(), SimClock::kNever);
  clock.AdvanceTo(due + 50);
  channel.SetHeld(false);
  EXPECT_EQ(channel.due(), due + 51);
}

TEST(SimChannelTest, DroppedFramesReturnTheirCallbacks) {
  SimClock clock(/*seed=*/5);
  SimChannel channel(&clock);
  IgnoreDone done;
  channel.Push(Frame(), nullptr, &done, /*copy=*/false);
  channel.Push(Frame(), nullptr, nullptr, /*copy=*/false);
  EXPECT_EQ(channel.Drop(), std::vector<SendDone*>{&done});
  EXPECT_EQ(channel.due(), SimClock::kNever);
}

TEST(SimChannelTest, DetachedFramesArriveWithoutTheirSender) {
  SimClock clock(/*seed=*/5);
  SimChannel channel(&clock);
  Receiver sink(/*places=*/false);
  IgnoreDone done;
  std::string payload = "kept";
  channel.Push(FrameWith(payload), payload.data(), &done, /*copy=*/false);
  EXPECT_EQ(channel.Detach(), std::vector<SendDone*>{&done});
  EXPECT_TRUE(channel.Detach().empty());
  payload.assign("gone");
  RunNext(channel, clock, sink);
  RunNext(channel, clock, sink);
  EXPECT_EQ(sink.got.back(), "kept");
}

}  // namespace
}  // namespace troupe::comm
