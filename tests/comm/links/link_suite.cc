#include "tests/comm/links/link_suite.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

// Each size is sent twice, so that it is both placed by the sink and not.
TEST_P(LinkTest, KeepsOrderAndBytesOfEverySize) {
  std::vector<std::string> texts;
  for (const std::size_t bytes :
       {0, 1, 7, 16, 48, 63, 64, 65, 1000, 4096, 65439, 65440, 65488, 65536,
        65537, 300'000, 1'048'575, 1'048'576}) {
    for (int i = 0; i < 2; ++i) texts.push_back(Text(bytes, texts.size()));
  }
  CountDone done;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text : texts) {
      SendText(&text - texts.data() + round % 2, text, &done);
    }
  }
  ASSERT_TRUE(PumpBoth([&] { return at_b_.count() == 3 * texts.size(); }));
  EXPECT_EQ(done.count, static_cast<int>(3 * texts.size()));
  const std::vector<RecordingSink::Got> all = at_b_.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t at = i % texts.size();
    EXPECT_EQ(all[i].frame.seq, at + i / texts.size() % 2);
    EXPECT_EQ(all[i].frame.type, 7);
    EXPECT_EQ(all[i].frame.words[2], ~all[i].frame.seq);
    EXPECT_TRUE(all[i].payload == texts[at]) << "frame " << i << " differs";
  }
}

TEST_P(LinkTest, CopiesWhereAsked) {
  // More bytes than any socket buffers.
  const auto size = [](std::uint64_t i) {
    return i % 8 == 0 ? 200'000 : 40'000;
  };
  // Draws are slow under a sanitizer: frame i has those from byte i on.
  const std::string draws = Text(200'300, 1);
  const auto text_of = [&](std::uint64_t i) {
    return draws.substr(i, size(i));
  };
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::string text = text_of(i);
    Frame frame;
    frame.bytes = static_cast<std::uint32_t>(text.size());
    frame.seq = i;
    pair_.a->Send(frame, text.data(), /*done=*/nullptr, /*copy=*/true);
    text.assign(text.size(), 'x');
  }
  ASSERT_TRUE(PumpBoth([&] { return at_b_.count() == 300; }));
  const std::vector<RecordingSink::Got> all = at_b_.all();
  for (std::uint64_t i = 0; i < 300; ++i) {
    EXPECT_TRUE(all[i].payload == text_of(i)) << i;
  }
}

TEST_P(LinkTest, CarriesManySmallFramesBothWays) {
  const std::uint64_t frames = GetParam().small_frames;
  for (std::uint64_t i = 0; i < frames; ++i) {
    Frame frame;
    frame.seq = i;
    pair_.a->Send(frame, nullptr, nullptr);
    frame.bytes = 8;
    pair_.b->Send(frame, reinterpret_cast<const char*>(&i), nullptr,
                  /*copy=*/true);
  }
  ASSERT_TRUE(PumpBoth(
      [&] { return at_a_.count() == frames && at_b_.count() == frames; }));
  const std::vector<RecordingSink::Got> to_a = at_a_.all();
  const std::vector<RecordingSink::Got> to_b = at_b_.all();
  for (std::uint64_t i = 0; i < frames; ++i) {
    ASSERT_EQ(to_b[i].frame.seq, i);
    ASSERT_EQ(to_a[i].frame.seq, i);
    ASSERT_EQ(to_a[i].payload,
              std::string(reinterpret_cast<const char*>(&i), sizeof(i)));
  }
}

TEST_P(LinkTest, ASinkMaySend) {
  // b answers each frame, until it has seen 1,000.
  at_b_.on_take = [&](const Frame& frame) {
    if (frame.seq < 1000) pair_.b->Send(frame, nullptr, nullptr);
  };
  at_a_.on_take = [&](const Frame& frame) {
    Frame next = frame;
    ++next.seq;
    pair_.a->Send(next, nullptr, nullptr);
  };
  pair_.a->Send(Frame(), nullptr, nullptr);
  EXPECT_TRUE(PumpBoth([&] { return at_b_.count() == 1001; }));
}

TEST_P(LinkTest, FourThreadsSendAtOnce) {
  constexpr std::uint64_t kFrames = 2'000;
  CountDone done;
  const std::string text = Text(5'000, 1);
  std::vector<std::thread> senders;
  for (std::uint16_t sender = 0; sender < 4; ++sender) {
    senders.emplace_back([&, sender] {
      for (std::uint64_t i = 0; i < kFrames; ++i) {
        Frame frame;
        frame.part = sender;
        frame.seq = i;
        frame.bytes = static_cast<std::uint32_t>(i % 7 == 0 ? text.size() : 0);
        pair_.a->Send(frame, text.data(), &done);
      }
    });
  }
  at_b_.forget_payloads = true;
  EXPECT_TRUE(PumpBoth([&] { return at_b_.count() == 4 * kFrames; }));
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(PumpBoth([&] { return done.count == 4 * kFrames; }));
  std::uint64_t next[4] = {};
  for (const RecordingSink::Got& got : at_b_.all()) {
    ASSERT_LT(got.frame.part, 4);
    ASSERT_EQ(got.frame.seq, next[got.frame.part]++);
  }
}

TEST_P(LinkTest, CloseTellsBothEndsWhy) {
  SendText(1, "first", nullptr);
  pair_.a->Close(absl::AbortedError("rank 3 had no memory"));
  pair_.a->Close(absl::InternalError("too late"));
  ASSERT_TRUE(PumpBoth([&] { return at_a_.losses() + at_b_.losses() == 2; }));
  EXPECT_EQ(at_a_.why(), absl::AbortedError("rank 3 had no memory"));
  EXPECT_EQ(at_b_.why(), absl::AbortedError("rank 3 had no memory"));
  EXPECT_EQ(at_b_.count(), 1u);
  // Nothing is sent any more, and no frame is kept.
  CountDone done;
  SendText(2, "second", &done);
  EXPECT_EQ(done.count, 1);
  Pump({pair_.a.get(), pair_.b.get()}, [n = 0]() mutable { return ++n > 9; });
  EXPECT_EQ(at_a_.losses() + at_b_.losses(), 2);
  EXPECT_EQ(at_b_.count(), 1u);
}

// The peer reads nothing, as if its process were stopped.
TEST_P(LinkTest, NeitherBlocksNorCopiesForASlowPeer) {
  CountDone done;
  const std::string text = Text(1 << 20, 1);
  for (std::uint64_t i = 0; i < 64; ++i) SendText(i, text, &done);
  while (pair_.a->Progress()) {
  }
  const int sent = done.count;
  EXPECT_LT(sent, 64);
  // Close() releases all frames at once, or after those that have begun; a
  // frame that is partly sent still arrives whole.
  const auto b_has_ended = [&] { return at_b_.losses() == 1; };
  std::thread slow_peer;
  if (GetParam().lends_payloads) {
    slow_peer =
        std::thread([&] { EXPECT_TRUE(Pump({pair_.b.get()}, b_has_ended)); });
  }
  pair_.a->Close(absl::AbortedError("enough"));
  ASSERT_TRUE(Pump({pair_.a.get()}, [&] { return at_a_.losses() == 1; }));
  EXPECT_EQ(done.count, 64);
  if (slow_peer.joinable()) slow_peer.join();
  ASSERT_TRUE(PumpBoth(b_has_ended));
  EXPECT_EQ(at_b_.why(), absl::AbortedError("enough"));
  EXPECT_GE(at_b_.count(), static_cast<std::size_t>(sent));
  const std::size_t begun = GetParam().lends_payloads ? 16 : 1;
  EXPECT_LE(at_b_.count(), static_cast<std::size_t>(sent) + begun);
  for (const RecordingSink::Got& got : at_b_.all()) {
    EXPECT_TRUE(got.payload == text);
  }
}

TEST_P(LinkTest, LosesAPeerThatIsGone) {
  CountDone done;
  const std::string text = Text(1 << 20, 1);
  for (std::uint64_t i = 0; i < 3; ++i) SendText(i, text, &done);
  ASSERT_TRUE(PumpBoth([&] { return at_b_.count() == 3; }));
  for (std::uint64_t i = 0; i < 64; ++i) SendText(i, text, &done);
  pair_.b.reset();
  ASSERT_TRUE(Pump({pair_.a.get()}, [&] { return at_a_.losses() == 1; }));
  EXPECT_EQ(at_a_.why().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(
      absl::StrContains(at_a_.why().message(), "process 1 at the other thread"))
      << at_a_.why();
  EXPECT_EQ(done.count, 67);
}

TEST_P(LinkTest, WhatWasSentBeforeAnEndComes) {
  for (std::uint64_t i = 0; i < 100; ++i) SendText(i, "", nullptr);
  pair_.a.reset();
  ASSERT_TRUE(Pump({pair_.b.get()}, [&] { return at_b_.losses() == 1; }));
  EXPECT_EQ(at_b_.count(), 100u);
}

TEST_P(LinkTest, ADestroyedLinkLetsGo) {
  CountDone done;
  const std::string text = Text(1 << 20, 1);
  for (std::uint64_t i = 0; i < 64; ++i) SendText(i, text, &done);
  pair_.a.reset();
  EXPECT_EQ(done.count, 64);
}

TEST_P(LinkTest, NamesItsPeer) {
  EXPECT_EQ(pair_.a->peer(), 1);
  EXPECT_TRUE(
      absl::EndsWith(pair_.a->ToString(), " to process 1 at the other thread"))
      << pair_.a->ToString();
}

// Frames go back and forth between threads that sleep: if a wake-up is lost,
// the test fails after a minute.
TEST_P(LinkTest, SleepersWakeUp) {
  constexpr std::size_t kRounds = 3'000;
  const auto answer = [](Link* link) {
    return [link](const Frame& frame) {
      Frame next = frame;
      ++next.seq;
      if (next.seq < 2 * kRounds) link->Send(next, nullptr, nullptr);
    };
  };
  at_a_.on_take = answer(pair_.a.get());
  at_b_.on_take = answer(pair_.b.get());
  pair_.a->Send(Frame(), nullptr, nullptr);
  Bell a_is_done;
  Bell b_is_done;
  std::thread other([&] {
    EXPECT_TRUE(PumpWithPoll(
        pair_.b.get(), [&] { return at_b_.count() == kRounds; }, &b_is_done));
  });
  EXPECT_TRUE(PumpWithPoll(
      pair_.a.get(), [&] { return at_a_.count() == kRounds; }, &a_is_done));
  other.join();
}

// Each end has two threads that drive it and sleep, and another that sends more
// bytes than fit: sleepers wait both for frames and for room.
TEST_P(LinkTest, SleepersWakeUpForRoomToo) {
  constexpr std::size_t kFrames = 150;
  at_a_.forget_payloads = true;
  at_b_.forget_payloads = true;
  const std::string text = Text(300'000, 1);
  std::vector<std::thread> threads;
  CountDone done;
  Bell finished;
  const auto all_is_done = [&] {
    return at_a_.count() == kFrames && at_b_.count() == kFrames &&
           done.count == 2 * kFrames;
  };
  for (Link* link : {pair_.a.get(), pair_.b.get()}) {
    threads.emplace_back([&, link] {
      for (std::uint64_t i = 0; i < kFrames; ++i) {
        Frame frame;
        frame.seq = i;
        frame.bytes = static_cast<std::uint32_t>(i * 7919 % text.size());
        link->Send(frame, text.data(), &done);
      }
      if (all_is_done()) finished.Ring();
    });
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, link] {
        EXPECT_TRUE(PumpWithPoll(link, all_is_done, &finished));
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(LinkTest, ASleeperHearsOfClose) {
  Bell a_is_done;
  Bell b_is_done;
  std::thread sleeper([&] {
    EXPECT_TRUE(PumpWithPoll(
        pair_.a.get(), [&] { return at_a_.losses() == 1; }, &a_is_done));
  });
  std::thread other_end([&] {
    EXPECT_TRUE(PumpWithPoll(
        pair_.b.get(), [&] { return at_b_.losses() == 1; }, &b_is_done));
  });
  pair_.a->Close(absl::CancelledError("by the user"));
  sleeper.join();
  other_end.join();
  EXPECT_EQ(at_b_.why(), absl::CancelledError("by the user"));
}

}  // namespace
}  // namespace troupe::comm
