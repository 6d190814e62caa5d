#include "actors/cluster/trace_share.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

StampedEvent EventOf(int i) {
  StampedEvent stamped;
  stamped.micros = 0.25 * i;
  TraceEvent& event = stamped.event;
  event.rank = i;
  event.track = TraceTrack::kCheckpointer;
  event.kind = TraceKind::kTransfer;
  event.phase = TracePhase::kEnd;
  event.step = 1'000'000'000'000 + i;
  event.action = pipeline::ActionKind::kReduceUpdateBucket;
  event.chunk = i + 1;
  event.bucket = i + 2;
  event.micro_batch = i + 3;
  event.boundary = i + 4;
  event.replica = i + 5;
  event.bytes = (std::int64_t{1} << 40) + i;
  event.name = "B" + std::to_string(i);
  return stamped;
}

void ExpectSame(const StampedEvent& a, const StampedEvent& b) {
  EXPECT_EQ(a.micros, b.micros);
  EXPECT_EQ(a.event.rank, b.event.rank);
  EXPECT_EQ(a.event.track, b.event.track);
  EXPECT_EQ(a.event.kind, b.event.kind);
  EXPECT_EQ(a.event.phase, b.event.phase);
  EXPECT_EQ(a.event.step, b.event.step);
  EXPECT_EQ(a.event.action, b.event.action);
  EXPECT_EQ(a.event.chunk, b.event.chunk);
  EXPECT_EQ(a.event.bucket, b.event.bucket);
  EXPECT_EQ(a.event.micro_batch, b.event.micro_batch);
  EXPECT_EQ(a.event.boundary, b.event.boundary);
  EXPECT_EQ(a.event.replica, b.event.replica);
  EXPECT_EQ(a.event.bytes, b.event.bytes);
  EXPECT_EQ(a.event.name, b.event.name);
}

TEST(TraceShareTest, EventsComeBackWhateverTheirNumber) {
  for (const int count : {0, 1, 4096, 4097, 10'000}) {
    std::vector<StampedEvent> events;
    for (int i = 0; i < count; ++i) events.push_back(EventOf(i));
    std::vector<StampedEvent> back;
    const std::vector<std::string> texts = EncodeEvents(events);
    EXPECT_EQ(static_cast<int>(texts.size()), (count + 4095) / 4096);
    for (const std::string& text : texts) {
      const auto part = DecodeEvents(text);
      ASSERT_TRUE(part.ok()) << part.status();
      back.insert(back.end(), part->begin(), part->end());
    }
    ASSERT_EQ(back.size(), events.size());
    for (int i = 0; i < count; ++i) ExpectSame(back[i], events[i]);
  }
}

TEST(TraceShareTest, ALongNameIsCut) {
  StampedEvent event = EventOf(0);
  event.event.name = std::string(5000, 'x');
  const auto back = DecodeEvents(EncodeEvents({event}).front());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->front().event.name, std::string(1024, 'x'));
}

TEST(TraceShareTest, WhatIsCutShortIsNoTrace) {
  const std::string text = EncodeEvents({EventOf(1), EventOf(2)}).front();
  const std::size_t one = EncodeEvents({EventOf(1)}).front().size();
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto events = DecodeEvents(text.substr(0, bytes));
    EXPECT_EQ(events.ok(), bytes == 0 || bytes == one) << bytes;
  }
}

// Decoding any bytes gives events with valid enumerators, or an error.
TEST(TraceShareTest, NonsenseIsRefusedOrHarmless) {
  const std::string text = EncodeEvents({EventOf(1), EventOf(2)}).front();
  int refused = 0;
  for (std::uint32_t seed = 0; seed < 20'000; ++seed) {
    nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kTest), {});
    std::string spoilt = text;
    for (int i = 1 + draws.Below(4); i > 0; --i) {
      spoilt[draws.Below(static_cast<int>(spoilt.size()))] =
          static_cast<char>(draws.Below(256));
    }
    const auto events = DecodeEvents(spoilt);
    if (!events.ok()) {
      ++refused;
      EXPECT_EQ(events.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    for (const StampedEvent& stamped : *events) {
      EXPECT_LE(stamped.event.track, TraceTrack::kCheckpointer);
      EXPECT_LE(stamped.event.kind, TraceKind::kCheckpoint);
      EXPECT_LE(stamped.event.phase, TracePhase::kInstant);
      EXPECT_LT(static_cast<int>(stamped.event.action), pipeline::kActionKinds);
      EXPECT_LE(stamped.event.name.size(), 1024u);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(TraceShareTest, TheShortestWayTellsTheClocksApart) {
  ClockOffset offset;
  EXPECT_EQ(offset.nanos(), 0);
  offset.Add(/*sent=*/100, /*answered=*/1000, /*received=*/300);
  EXPECT_EQ(offset.nanos(), 800);
  offset.Add(400, 1500, 420);  // shorter
  EXPECT_EQ(offset.nanos(), 1090);
  offset.Add(500, 9000, 900);  // longer
  EXPECT_EQ(offset.nanos(), 1090);
  offset.Add(700, 1, 600);  // back in time
  EXPECT_EQ(offset.nanos(), 1090);
}

}  // namespace
}  // namespace troupe::actors
