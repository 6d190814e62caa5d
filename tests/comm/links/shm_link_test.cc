// Tests the parts of a link through shared memory, and that it does not trust
// what its peer writes there and to the socket.

#include "comm/shm/shm_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "comm/shm/control_socket.h"
#include "comm/shm/doorbell.h"
#include "comm/shm/ring.h"
#include "comm/shm/shm_segment.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

// A ring on the heap, where a sanitizer detects accesses out of bounds.
struct Ring {
  Ring()
      : data(new (std::align_val_t(kCacheLineBytes)) char[kRingBytesMin]()),
        writer(&head, data, kRingBytesMin),
        reader(&head, data, kRingBytesMin) {}
  ~Ring() { ::operator delete[](data, std::align_val_t(kCacheLineBytes)); }

  RingWriter::Result Put(std::uint32_t bytes) {
    static const std::string text = Text(kFrameBytesMax, 1);
    Frame frame;
    frame.bytes = bytes;
    return writer.Put(frame, text.data());
  }

  RingHead head{};
  char* const data;
  RingWriter writer;
  RingReader reader;
};

TEST(RingTest, FillsUpAndGoesOn) {
  Ring ring;
  EXPECT_EQ(ring.reader.Next(), RingReader::Result::kNothing);
  int put = 0;
  while (ring.Put(kFrameBytesMax) == RingWriter::Result::kDone) ++put;
  EXPECT_EQ(put, 3);
  EXPECT_FALSE(ring.writer.HasRoom(kFrameBytesMax));
  EXPECT_EQ(ring.reader.Next(), RingReader::Result::kNothing);
  ring.writer.Publish();
  ASSERT_EQ(ring.reader.Next(), RingReader::Result::kFrame);
  EXPECT_EQ(ring.reader.frame().bytes, kFrameBytesMax);
  ring.reader.Pop();
  EXPECT_EQ(ring.Put(kFrameBytesMax), RingWriter::Result::kFull);
  ring.reader.Release();
  // The rest of the ring is skipped: the fourth frame lies where the first did.
  EXPECT_TRUE(ring.writer.HasRoom(kFrameBytesMax));
  const char* const first = ring.data + kCacheLineBytes;
  EXPECT_EQ(ring.Put(kFrameBytesMax), RingWriter::Result::kDone);
  ring.writer.Publish();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ring.reader.Next(), RingReader::Result::kFrame);
    EXPECT_EQ(ring.reader.payload() == first, i == 2);
    ring.reader.Pop();
  }
  EXPECT_EQ(ring.reader.Next(), RingReader::Result::kNothing);
}

TEST(RingTest, AReaderFindsPositionsThatCannotBe) {
  for (const std::uint64_t position :
       {std::uint64_t{1}, std::uint64_t{32}, std::uint64_t{kRingBytesMin} + 64,
        ~std::uint64_t{0}, ~std::uint64_t{63}}) {
    Ring ring;
    ring.head.published = position;
    EXPECT_EQ(ring.reader.Next(), RingReader::Result::kBroken) << position;
  }
}

TEST(RingTest, AWriterFindsPositionsThatCannotBe) {
  for (const std::uint64_t position :
       {std::uint64_t{1}, std::uint64_t{kRingBytesMin} * 2, ~std::uint64_t{0},
        ~std::uint64_t{63}}) {
    Ring ring;
    while (ring.Put(kFrameBytesMax) == RingWriter::Result::kDone) {
    }
    ring.writer.Publish();
    ring.head.released = position;
    EXPECT_EQ(ring.Put(kFrameBytesMax), RingWriter::Result::kBroken)
        << position;
  }
}

TEST(RingTest, SurvivesNoise) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    static Ring* ring = nullptr;
    // A new ring is expensive: most cases reuse the memory of a broken one.
    static std::unique_ptr<Ring> owner;
    if (seed % 500 == 0) owner = std::make_unique<Ring>();
    ring = owner.get();
    const std::string noise = Text(4096, seed);
    std::memcpy(ring->data + seed * 64 % (kRingBytesMin - 4096), noise.data(),
                noise.size());
    if (seed % 2 == 0) {
      // Frame heads with a valid kind and random lengths.
      const std::uint64_t kind = 1 + seed / 2 % 2;
      const std::uint32_t bytes = static_cast<std::uint32_t>(
          seed * 0x9e3779b97f4a7c15u >> (40 + seed % 20));
      for (std::size_t at = 0; at + 64 <= kRingBytesMin; at += 64 << 10) {
        std::memcpy(ring->data + at, &kind, sizeof(kind));
        std::memcpy(ring->data + at + 16, &bytes, sizeof(bytes));
      }
    }
    RingReader reader(&ring->head, ring->data, kRingBytesMin);
    ring->head.published = seed % 5 == 0
                               ? seed * 0x9e3779b97f4a7c15u
                               : seed * 6400 % kRingBytesMin / 64 * 64;
    std::uint64_t sum = 0;
    while (reader.Next() == RingReader::Result::kFrame) {
      ASSERT_LE(reader.frame().bytes, kFrameBytesMax);
      for (std::uint32_t i = 0; i < reader.frame().bytes; i += 64) {
        sum += static_cast<unsigned char>(reader.payload()[i]);
      }
      reader.Pop();
    }
    ASSERT_LE(sum, 255u * kRingBytesMin / 64);
  }
}

// The doorbells of both ends of a link.
struct Doorbells {
  std::atomic<std::uint32_t> sleeps_a{0}, sleeps_b{0};
  Doorbell a{&sleeps_a, &sleeps_b};
  Doorbell b{&sleeps_b, &sleeps_a};
};

TEST(DoorbellTest, NeedsOneWakeUpPerSleep) {
  Doorbells bells;
  EXPECT_FALSE(bells.a.ClaimWakeUp());
  for (int sleep = 0; sleep < 2; ++sleep) {
    bells.b.Arm();
    EXPECT_FALSE(bells.b.ClaimWakeUp());  // the other direction
    EXPECT_TRUE(bells.a.ClaimWakeUp());
    EXPECT_FALSE(bells.a.ClaimWakeUp());  // it is on its way
    bells.b.Disarm();
    EXPECT_FALSE(bells.b.Rearm());
  }
}

TEST(DoorbellTest, CountsAThreadOnce) {
  Doorbells bells;
  bells.b.Arm();
  bells.b.Arm();
  bells.b.Disarm();
  EXPECT_FALSE(bells.b.Rearm());
}

TEST(DoorbellTest, WakesTheNextThreadToo) {
  Doorbells bells;
  absl::Notification armed, woken;
  std::thread other([&] {
    bells.b.Arm();
    armed.Notify();
    woken.WaitForNotification();
    bells.b.Disarm();
  });
  armed.WaitForNotification();
  bells.b.Arm();
  ASSERT_TRUE(bells.a.ClaimWakeUp());
  // This thread receives the wake-up; the other one needs one, too.
  bells.b.Disarm();
  EXPECT_TRUE(bells.b.Rearm());
  EXPECT_TRUE(bells.a.ClaimWakeUp());
  woken.Notify();
  other.join();
  EXPECT_FALSE(bells.b.Rearm());
  EXPECT_FALSE(bells.a.ClaimWakeUp());
}

// Both ends of a control channel.
struct Channel {
  explicit Channel(SocketPair sockets = MakeSockets())
      : a(std::move(sockets.a)), b(std::move(sockets.b)) {}

  ControlSocket a;
  ControlSocket b;
};

Frame Message(std::uint64_t id) {
  Frame frame;
  frame.type = kReservedType;
  frame.words[2] = id;
  return frame;
}

ino_t FileOf(int fd) {
  struct stat state {};
  EXPECT_EQ(::fstat(fd, &state), 0);
  return state.st_ino;
}

TEST(ControlSocketTest, PassesMessagesWithDescriptorsInOrder) {
  Channel channel;
  EXPECT_EQ(channel.b.Receive(), ControlSocket::Received::kNothing);
  std::vector<base::OwnedFd> files;
  for (std::uint64_t id = 0; id < 3; ++id) {
    files.emplace_back(::memfd_create("test", MFD_CLOEXEC));
    ASSERT_TRUE(channel.a.Send(Message(id), id == 1 ? -1 : files[id].get()));
  }
  std::uint64_t id = 0;
  while (channel.b.Receive() == ControlSocket::Received::kBytes) {
    while (channel.b.Next() == ControlSocket::Got::kMessage) {
      EXPECT_EQ(channel.b.frame().words[2], id);
      if (id != 1) {
        const base::OwnedFd got = channel.b.TakeDescriptor();
        EXPECT_NE(got.get(), files[id].get());
        EXPECT_EQ(FileOf(got.get()), FileOf(files[id].get()));
      }
      ++id;
    }
  }
  EXPECT_EQ(id, 3);
  EXPECT_FALSE(channel.b.TakeDescriptor().valid());
}

TEST(ControlSocketTest, IsFullAtSomePoint) {
  Channel channel;
  std::uint64_t sent = 0;
  while (sent < 1'000'000 && channel.a.Send(Message(sent))) ++sent;
  ASSERT_LT(sent, 1'000'000);
  std::uint64_t got = 0;
  while (channel.b.Receive() == ControlSocket::Received::kBytes) {
    while (channel.b.Next() == ControlSocket::Got::kMessage) ++got;
  }
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(channel.a.Send(Message(sent)));
}

TEST(ControlSocketTest, EndsWithTheReason) {
  Channel channel;
  ASSERT_TRUE(channel.a.Send(Message(7)));
  channel.a.Shutdown(absl::AbortedError("rank 2 died"));
  EXPECT_FALSE(channel.a.Send(Message(8)));
  ASSERT_EQ(channel.b.Receive(), ControlSocket::Received::kBytes);
  ASSERT_EQ(channel.b.Next(), ControlSocket::Got::kMessage);
  ASSERT_EQ(channel.b.Next(), ControlSocket::Got::kFarewell);
  EXPECT_EQ(channel.b.farewell(), absl::AbortedError("rank 2 died"));
  EXPECT_EQ(channel.b.Receive(), ControlSocket::Received::kClosed);
}

TEST(ControlSocketTest, FindsAFrameThatIsNoMessage) {
  Channel channel;
  Frame frame = Message(1);
  frame.type = 5;
  ASSERT_TRUE(channel.a.Send(frame));
  ASSERT_EQ(channel.b.Receive(), ControlSocket::Received::kBytes);
  EXPECT_EQ(channel.b.Next(), ControlSocket::Got::kBroken);
}

TEST(ControlSocketTest, FindsDescriptorsInExcess) {
  Channel channel;
  const base::OwnedFd file(::memfd_create("test", MFD_CLOEXEC));
  for (std::size_t i = 0; i <= kDescriptorsMax; ++i) {
    ASSERT_TRUE(channel.a.Send(Message(i), file.get()));
    ASSERT_EQ(channel.b.Receive(), ControlSocket::Received::kBytes);
    EXPECT_EQ(channel.b.Next(), i < kDescriptorsMax
                                    ? ControlSocket::Got::kMessage
                                    : ControlSocket::Got::kBroken);
    EXPECT_EQ(channel.b.Next(), ControlSocket::Got::kNothing);
  }
}

TEST(ShmLinkTest, LosesAPeerThatWritesNonsense) {
  const auto segment = *ShmSegment::Create(kRingBytesMin);
  SocketPair sockets = MakeSockets();
  ShmLinkOptions options;
  options.peer = 3;
  options.address = "pid 4711 on this host";
  const auto link = *MakeShmLink(segment, std::move(sockets.a), options);
  RecordingSink sink;
  link->SetSink(&sink);
  segment->ring_head(1)->published = 12'345;
  ASSERT_TRUE(Pump({link.get()}, [&] { return sink.losses() == 1; }));
  EXPECT_EQ(sink.why(),
            absl::DataLossError("process 3 at pid 4711 on this host wrote "
                                "nonsense into the shared memory"));
}

TEST(ShmLinkTest, LosesAPeerThatSaysNonsense) {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    static const auto segment = *ShmSegment::Create(kRingBytesMin);
    SocketPair sockets = MakeSockets();
    const auto link =
        *MakeShmLink(segment, std::move(sockets.a), ShmLinkOptions());
    RecordingSink sink;
    link->SetSink(&sink);
    const std::string noise = Text(seed, seed);
    ASSERT_EQ(::write(sockets.b.get(), noise.data(), noise.size()),
              static_cast<ssize_t>(noise.size()));
    sockets.b.reset();
    ASSERT_TRUE(Pump({link.get()}, [&] { return sink.losses() == 1; }));
  }
}

TEST(ShmSegmentTest, IsTheSameMemoryAtBothEnds) {
  const auto a = *ShmSegment::Create(2 * kRingBytesMin);
  const auto b = *ShmSegment::Open(base::OwnedFd(::dup(a->fd())));
  EXPECT_EQ(b->ring_bytes(), 2 * kRingBytesMin);
  a->ring_data(1)[2 * kRingBytesMin - 1] = 'x';
  EXPECT_EQ(b->ring_data(1)[2 * kRingBytesMin - 1], 'x');
  EXPECT_NE(a->ring_data(0), b->ring_data(0));
}

TEST(ShmSegmentTest, RefusesSizesThatFitNoRing) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{4096}, kRingBytesMin / 2,
        kRingBytesMin + 4096, 2 * kRingBytesMax}) {
    EXPECT_TRUE(absl::StrContains(ShmSegment::Create(bytes).status().message(),
                                  "must be a power of two from 4194304"));
  }
}

TEST(ShmSegmentTest, RefusesOtherFiles) {
  base::OwnedFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(absl::StrContains(
      ShmSegment::Open(std::move(null)).status().message(), "not sealed"));

  base::OwnedFd open(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096 + 2 * kRingBytesMin), 0);
  EXPECT_TRUE(absl::StrContains(
      ShmSegment::Open(std::move(open)).status().message(), "not sealed"));

  base::OwnedFd small(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), 4096 + kRingBytesMin), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS,
                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            0);
  EXPECT_TRUE(absl::StrContains(
      ShmSegment::Open(std::move(small)).status().message(), "fits no ring"));
}

// No process can shrink a segment while another reads it.
TEST(ShmSegmentTest, KeepsItsSize) {
  const auto segment = *ShmSegment::Create(kRingBytesMin);
  EXPECT_NE(::ftruncate(segment->fd(), 0), 0);
}

}  // namespace
}  // namespace troupe::comm
