// Tests that a link does not trust the bytes that it receives.

#include "comm/tcp/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "comm/farewell.h"
#include "comm/tcp/frame_reader.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

// Fills up `bytes` with zeros to a multiple of `unit`.
std::string Padded(std::string bytes, std::size_t unit = kStreamUnitBytes) {
  bytes.resize((bytes.size() + unit - 1) / unit * unit);
  return bytes;
}

std::string Bytes(const Frame& frame, std::size_t unit = kStreamUnitBytes) {
  return Padded(
      std::string(reinterpret_cast<const char*>(&frame), sizeof(frame)), unit);
}

// A link, with a plain socket as its other end.
struct OneEnd {
  explicit OneEnd(SocketPair sockets = MakeSockets())
      : wire(std::move(sockets.b)) {
    TcpLinkOptions options;
    options.peer = 3;
    options.address = "10.0.0.7:40112";
    link = *MakeTcpLink(std::move(sockets.a), options);
    link->SetSink(&sink);
  }
  void Say(const std::string& text) {
    ASSERT_EQ(::send(wire.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  bool Lose() {
    return Pump({link.get()}, [&] { return sink.losses() == 1; });
  }

  RecordingSink sink{RecordingSink::Places::kEverySecond};
  base::OwnedFd wire;
  std::unique_ptr<Link> link;
};

TEST(TcpLinkTest, RefusesLongPayloads) {
  for (const std::uint32_t bytes : {kFrameBytesMax + 1, 0xffffffffu}) {
    OneEnd end;
    Frame frame;
    frame.bytes = bytes;
    end.Say(Bytes(frame));
    ASSERT_TRUE(end.Lose());
    const absl::Status want = absl::DataLossError(
        absl::StrCat("process 3 at 10.0.0.7:40112 sent a frame of ", bytes,
                     " bytes; the limit is 1048576"));
    EXPECT_EQ(end.sink.why(), want);
    // The other end receives the reason.
    std::string heard(1000, '\0');
    const ssize_t got = ::recv(end.wire.get(), heard.data(), heard.size(), 0);
    ASSERT_GT(got, static_cast<ssize_t>(kStreamUnitBytes));
    std::memcpy(&frame, heard.data(), sizeof(frame));
    EXPECT_EQ(ReadFarewell(frame, heard.data() + kStreamUnitBytes), want);
  }
}

TEST(TcpLinkTest, SaysHowAConnectionEnded) {
  OneEnd closed;
  closed.wire.reset();
  ASSERT_TRUE(closed.Lose());
  EXPECT_EQ(closed.sink.why(),
            absl::UnavailableError(
                "process 3 at 10.0.0.7:40112 closed the connection"));

  OneEnd half;  // ends in the middle of a frame
  Frame frame;
  frame.bytes = 1000;
  half.Say(Bytes(frame) + "and no more");
  half.wire.reset();
  ASSERT_TRUE(half.Lose());
  EXPECT_EQ(half.sink.count(), 0u);

  OneEnd reset(MakeTcpSockets());
  const linger at_once{1, 0};
  ::setsockopt(reset.wire.get(), SOL_SOCKET, SO_LINGER, &at_once,
               sizeof(at_once));
  reset.wire.reset();
  ASSERT_TRUE(reset.Lose());
  EXPECT_EQ(reset.sink.why(),
            absl::UnavailableError("the connection to process 3 at "
                                   "10.0.0.7:40112 is lost: Connection reset "
                                   "by peer"));
}

TEST(TcpLinkTest, AFarewellIsCheckedToo) {
  OneEnd end;
  Frame frame;
  frame.type = kReservedType;
  frame.words[0] = 4711;
  frame.bytes = 100'000;
  end.Say(Bytes(frame) + std::string(100'000, 'x'));
  ASSERT_TRUE(end.Lose());
  EXPECT_EQ(end.sink.why(),
            absl::UnknownError(std::string(kFarewellBytesMax, 'x')));
}

TEST(TcpLinkTest, NothingPacesAConnectionWithinAHost) {
  SocketPair sockets = MakeTcpSockets();
  const base::OwnedFd same(::dup(sockets.a.get()));
  const OneEnd end(std::move(sockets));
  char algorithm[16] = {};
  socklen_t bytes = sizeof(algorithm);
  ASSERT_EQ(
      ::getsockopt(same.get(), IPPROTO_TCP, TCP_CONGESTION, algorithm, &bytes),
      0);
  EXPECT_STREQ(algorithm, "reno");
}

TEST(TcpLinkTest, HeadersAndPayloadsBeginAtCacheLines) {
  OneEnd end;
  Frame frame;
  frame.seq = 7;
  std::string want;
  for (const std::string text : {"", "hello", "a"}) {
    frame.bytes = static_cast<std::uint32_t>(text.size());
    end.link->Send(frame, text.data(), /*done=*/nullptr, /*copy=*/true);
    want += Bytes(frame) + Padded(text);
  }
  std::string heard(1000, '\0');
  const ssize_t got = ::recv(end.wire.get(), heard.data(), heard.size(), 0);
  ASSERT_GT(got, 0);
  heard.resize(got);
  EXPECT_TRUE(heard == want);
  EXPECT_EQ(want.size(), 5 * kStreamUnitBytes);
}

TEST(TcpLinkTest, SurvivesNoise) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    OneEnd end;
    std::string noise = Text(seed % 997, seed);
    if (seed % 3 == 0 && noise.size() >= kStreamUnitBytes) {
      // Some noise begins with a valid head.
      Frame frame;
      frame.bytes = static_cast<std::uint32_t>(seed % 300);
      noise.replace(0, kStreamUnitBytes, Bytes(frame));
    }
    if (!noise.empty()) end.Say(noise);
    end.wire.reset();
    ASSERT_TRUE(end.Lose()) << seed;
    ASSERT_EQ(end.sink.complaints(), "") << seed;
  }
}

// Frames of many sizes arrive cut at arbitrary places.
class FrameReaderTest : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Units, FrameReaderTest,
                         testing::Values(1, kStreamUnitBytes));

TEST_P(FrameReaderTest, ReadsFramesHoweverTheyAreCut) {
  const std::size_t unit = GetParam();
  std::string stream;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 60; ++i) {
    texts.push_back(Text(i * i * i * 7 % 90'000, i));
    Frame frame;
    frame.seq = i;
    frame.bytes = static_cast<std::uint32_t>(texts.back().size());
    stream += Bytes(frame, unit) + Padded(texts.back(), unit);
  }
  for (const std::size_t step : {1, 7, 48, 49, 4096, 65536, 1 << 20}) {
    FrameReader reader(unit);
    std::vector<char> placed(kFrameBytesMax);
    const auto place = [&](const Frame& frame) {
      return frame.seq % 3 == 0 ? placed.data() : nullptr;
    };
    std::size_t at = 0;
    std::size_t next = 0;
    while (next < texts.size()) {
      const FrameReader::Got got = reader.Next(place);
      ASSERT_NE(got, FrameReader::Got::kBad);
      if (got == FrameReader::Got::kFrame) {
        ASSERT_EQ(reader.frame().seq, next);
        ASSERT_TRUE(
            texts[next] ==
            std::string(reader.payload() == nullptr ? "" : reader.payload(),
                        reader.frame().bytes));
        ++next;
        continue;
      }
      ASSERT_LT(at, stream.size());
      iovec room[2];
      const int pieces = reader.Room(room);
      std::size_t filled = 0;
      for (int i = 0; i < pieces; ++i) {
        const std::size_t count =
            std::min({room[i].iov_len, step - filled, stream.size() - at});
        std::memcpy(room[i].iov_base, stream.data() + at, count);
        at += count;
        filled += count;
      }
      reader.Filled(filled);
    }
    // The zeros behind the last payload may be unread.
    EXPECT_LT(stream.size() - at, unit);
  }
}

// A payload of 64 KiB is not copied, even if it arrives bit by bit.
TEST_P(FrameReaderTest, LeavesWhatFitsInTheBuffer) {
  const std::size_t unit = GetParam();
  FrameReader reader(unit);
  Frame frame;
  frame.bytes = 64 << 10;
  const std::string text = Text(frame.bytes, /*seed=*/3);
  const std::string stream = Bytes(frame, unit) + text;
  const auto place = [](const Frame&) -> char* { return nullptr; };
  iovec room[2];
  ASSERT_EQ(reader.Room(room), 1);
  char* const buffer = static_cast<char*>(room[0].iov_base);
  std::size_t at = 0;
  while (reader.Next(place) == FrameReader::Got::kMore) {
    ASSERT_LT(at, stream.size());
    ASSERT_EQ(reader.Room(room), 1);
    EXPECT_EQ(room[0].iov_base, buffer + at);
    const std::size_t count = std::min<std::size_t>(20'000, stream.size() - at);
    ASSERT_LE(count, room[0].iov_len);
    std::memcpy(room[0].iov_base, stream.data() + at, count);
    at += count;
    reader.Filled(count);
  }
  EXPECT_EQ(reader.payload(), buffer + stream.size() - text.size());
  EXPECT_TRUE(text == std::string(reader.payload(), frame.bytes));
}

}  // namespace
}  // namespace troupe::comm
