// Tests memory that processes of a host share: its allocation, and the protocol
// by which links lend it.

#include "comm/shm/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/shm/lent_ranges.h"
#include "comm/shm/sealed_file.h"
#include "comm/shm/shm_link.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

std::size_t OpenDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(SharedMemoryTest, FindsTheRangeOfATensor) {
  SharedMemory memory;
  const Tensor small = Tensor::Zeros({100}, DType::kF32, memory.allocator());
  const Tensor other = Tensor::Zeros({100}, DType::kF32, memory.allocator());
  const Tensor large =
      Tensor::Zeros({1 << 20}, DType::kF32, memory.allocator());
  const auto a = memory.Find(small.raw(), small.bytes());
  const auto b = memory.Find(other.raw(), other.bytes());
  const auto c = memory.Find(large.raw(), large.bytes());
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->id, b->id);  // small blocks share a file
  EXPECT_NE(a->id, c->id);
  EXPECT_GE(static_cast<char*>(small.raw()), a->data);
  EXPECT_EQ(c->data, large.raw());
  EXPECT_FALSE(memory.Find(large.raw(), c->bytes + 1));
  int here = 0;
  EXPECT_FALSE(memory.Find(&here, sizeof(here)));
}

TEST(SharedMemoryTest, IsOrdinaryWhereTheSystemRefuses) {
  std::vector<absl::Status> refusals;
  SharedMemory::Options options;
  options.bytes_max = 4 << 20;
  options.on_refused = [&](const absl::Status& why) {
    refusals.push_back(why);
  };
  SharedMemory memory(options);
  const Tensor fits = Tensor::Zeros({8}, DType::kF32, memory.allocator());
  EXPECT_TRUE(memory.Find(fits.raw(), fits.bytes()));
  for (int i = 0; i < 2; ++i) {
    const Tensor does_not =
        Tensor::Zeros({1 << 20}, DType::kF32, memory.allocator());
    ASSERT_TRUE(does_not.defined());
    EXPECT_FALSE(memory.Find(does_not.raw(), does_not.bytes()));
  }
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].message(),
            "4194304 bytes of shared memory beside 4194304; the limit is "
            "4194304");
}

TEST(SharedMemoryTest, TellsOfWhatIsGone) {
  SharedMemory memory;
  std::vector<std::uint64_t> gone;
  std::size_t cursor = 0;
  std::uint64_t id = 0;
  {
    const Tensor large =
        Tensor::Zeros({1 << 20}, DType::kF32, memory.allocator());
    id = memory.Find(large.raw(), 1)->id;
  }
  memory.AddGone(&cursor, &gone);
  EXPECT_TRUE(gone.empty());  // the allocator caches it for reuse
  memory.allocator().ReleaseCached();
  memory.AddGone(&cursor, &gone);
  EXPECT_EQ(gone, std::vector<std::uint64_t>{id});
  memory.AddGone(&cursor, &gone);
  EXPECT_EQ(gone.size(), 1u);
}

// Late writes by a process that still has a mapping must not reach a later
// tensor.
TEST(SharedMemoryTest, HandsOutNothingAgainThatIsSpoiled) {
  SharedMemory memory;
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{1} << 20}) {
    Tensor before = Tensor::Zeros({count}, DType::kF32, memory.allocator());
    const auto range = *memory.Find(before.raw(), before.bytes());
    void* const mapped = ::mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED, range.fd, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory.Spoil();
    before = Tensor();
    std::vector<Tensor> after;
    for (int i = 0; i < 20; ++i) {
      after.push_back(Tensor::Zeros({count}, DType::kF32, memory.allocator()));
    }
    std::memset(mapped, 0xff, range.bytes);
    for (const Tensor& tensor : after) {
      EXPECT_NE(memory.Find(tensor.raw(), 1)->id, range.id);
      for (float value : tensor.span<float>()) ASSERT_EQ(value, 0);
    }
    ::munmap(mapped, range.bytes);
  }
}

TEST(SharedMemoryTest, LeavesNoDescriptorBehind) {
  const std::size_t before = OpenDescriptors();
  {
    SharedMemory memory;
    const Tensor large =
        Tensor::Zeros({1 << 20}, DType::kF32, memory.allocator());
    EXPECT_EQ(OpenDescriptors(), before + 1);
    const Tensor small = Tensor::Zeros({1}, DType::kF32, memory.allocator());
    EXPECT_EQ(OpenDescriptors(), before + 2);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

// Private pages whose first byte is `first`.
class Pages {
 public:
  static constexpr std::size_t kBytes = 4 * 4096;

  explicit Pages(char first)
      : data_(static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    data_[0] = first;
  }
  ~Pages() { ::munmap(data_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char& operator[](std::size_t i) { return data_[i]; }
  char* data() { return data_; }
  absl::Span<char> Part(std::size_t begin, std::size_t bytes) {
    return {data_ + begin, bytes};
  }

 private:
  char* const data_;
};

TEST(SharedMemoryTest, SharesPagesInPlace) {
  const std::size_t before = OpenDescriptors();
  SharedMemory memory;
  Pages a('a'), b('b');
  std::shared_ptr<void> shared =
      memory.Share({a.Part(0, 4096), b.Part(4096, 8192), b.Part(0, 4096)});
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(OpenDescriptors(), before + 1);
  EXPECT_EQ(a[0], 'a');
  EXPECT_EQ(b[0], 'b');
  std::uint64_t offset = 0;
  const auto range = memory.Find(b.data(), 10, &offset);
  ASSERT_TRUE(range);
  EXPECT_EQ(offset, 4096u + 8192u);
  EXPECT_EQ(memory.Find(b.data() + 5000, 10, &offset)->id, range->id);
  EXPECT_EQ(offset, 5000u);
  // The rest of the first block, and what begins in one part and ends in
  // another, are no range.
  EXPECT_FALSE(memory.Find(a.data() + 4096, 1));
  EXPECT_FALSE(memory.Find(b.data() + 4000, 200));
  void* const mapped = ::mmap(nullptr, range->bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED, range->fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  char* const theirs = static_cast<char*>(mapped);
  EXPECT_EQ(theirs[0], 'a');
  EXPECT_EQ(theirs[4096 + 8192], 'b');
  b[5000] = 'c';
  EXPECT_EQ(theirs[5000], 'c');
  // Afterwards the pages are private, and have their contents.
  shared.reset();
  std::memset(mapped, 0, range->bytes);
  ::munmap(mapped, range->bytes);
  EXPECT_EQ(a[0], 'a');
  EXPECT_EQ(b[5000], 'c');
  EXPECT_FALSE(memory.Find(b.data(), 10));
  std::size_t cursor = 0;
  std::vector<std::uint64_t> gone;
  memory.AddGone(&cursor, &gone);
  EXPECT_EQ(gone, std::vector<std::uint64_t>{range->id});
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(SharedMemoryTest, LeavesPagesPrivateWhereTheSystemRefuses) {
  int refusals = 0;
  SharedMemory::Options options;
  options.bytes_max = 4096;
  options.on_refused = [&](const absl::Status&) { ++refusals; };
  SharedMemory memory(options);
  Pages a('a'), b('b');
  EXPECT_EQ(memory.Share({a.Part(0, 4096), b.Part(0, 4096)}), nullptr);
  EXPECT_EQ(memory.Share({}), nullptr);
  EXPECT_EQ(refusals, 1);
  EXPECT_FALSE(memory.Find(a.data(), 1));
  EXPECT_EQ(a[0], 'a');
  EXPECT_NE(memory.Share({b.Part(0, 4096)}), nullptr);
}

SharedRange RangeOf(const SharedMemory& memory, const Tensor& tensor) {
  return *memory.Find(tensor.raw(), tensor.bytes());
}

class LendingLinks : public testing::Test {
 protected:
  LendingLinks() {
    pair_.a->SetSink(&sink_a_);
    pair_.b->SetSink(&sink_b_);
  }
  bool LendAtLast(const SharedRange& range) {
    return Pump({pair_.a.get(), pair_.b.get()},
                [&] { return pair_.a->Lend(range); });
  }

  SharedMemory memory_;
  const Tensor tensor_ =
      Tensor::Zeros({1 << 20}, DType::kF32, memory_.allocator());
  const SharedRange range_ = RangeOf(memory_, tensor_);
  LinkPair pair_ = MakeRemappedShmPair();
  RecordingSink sink_a_, sink_b_;
};

TEST_F(LendingLinks, TheOtherEndSeesTheSameBytes) {
  EXPECT_FALSE(pair_.a->Lend(range_));
  ASSERT_TRUE(LendAtLast(range_));
  const auto there = pair_.b->Borrow(range_.id, 4096, 8);
  ASSERT_NE(there, nullptr);
  EXPECT_NE(there.get(), range_.data + 4096);
  std::memcpy(tensor_.data<float>() + 1024, "troupe!", 8);
  EXPECT_STREQ(there.get(), "troupe!");
  EXPECT_TRUE(pair_.b->BorrowedHolds());
}

TEST_F(LendingLinks, KnowsWhereARangeEnds) {
  ASSERT_TRUE(LendAtLast(range_));
  EXPECT_NE(pair_.b->Borrow(range_.id, 0, range_.bytes), nullptr);
  EXPECT_NE(pair_.b->Borrow(range_.id, range_.bytes, 0), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, 0, range_.bytes + 1), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, 1, range_.bytes), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, range_.bytes + 1, 0), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, kHuge, 2), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, 2, kHuge), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id, kHuge - 1, kHuge), nullptr);
  EXPECT_EQ(pair_.b->Borrow(range_.id + 1, 0, 1), nullptr);
  EXPECT_EQ(pair_.b->Borrow(0, 0, 0), nullptr);
  EXPECT_EQ(pair_.a->Borrow(range_.id, 0, 1), nullptr);  // a range of its own
}

TEST_F(LendingLinks, WhatIsTakenBackStaysAsLongAsItIsUsed) {
  ASSERT_TRUE(LendAtLast(range_));
  const auto there = pair_.b->Borrow(range_.id, 0, 8);
  pair_.a->TakeBack(range_.id);
  ASSERT_TRUE(Pump({pair_.a.get(), pair_.b.get()}, [&] {
    return pair_.b->Borrow(range_.id, 0, 8) == nullptr;
  }));
  std::memcpy(tensor_.raw(), "still", 6);
  EXPECT_STREQ(there.get(), "still");
  EXPECT_FALSE(pair_.a->Lend(range_));  // must be offered again first
}

TEST_F(LendingLinks, ALinkThatIsGivenUpHoldsNoMore) {
  ASSERT_TRUE(LendAtLast(range_));
  const auto there = pair_.b->Borrow(range_.id, 0, 8);
  std::memcpy(tensor_.raw(), "mapped", 7);
  pair_.a->Close(absl::CancelledError("enough"));
  ASSERT_TRUE(Pump({pair_.a.get()}, [&] { return sink_a_.losses() == 1; }));
  EXPECT_FALSE(pair_.b->BorrowedHolds());
  EXPECT_FALSE(pair_.a->Lend(range_));
  pair_.a.reset();
  pair_.b.reset();
  EXPECT_STREQ(there.get(), "mapped");
}

TEST_F(LendingLinks, LeaveNoDescriptorBehind) {
  const std::size_t before = OpenDescriptors();
  ASSERT_TRUE(LendAtLast(range_));
  EXPECT_EQ(OpenDescriptors(), before);
}

// A peer that breaks the rules of lending loses its link, and nothing else.
TEST(ShmLinkTest, LosesAPeerThatLendsNonsense) {
  for (const std::uint64_t word : {1, 2, 3, 4, 5, 99}) {
    for (const bool by_ring : {false, true}) {
      const auto segment = *ShmSegment::Create(kRingBytesMin);
      SocketPair sockets = MakeSockets();
      const auto link =
          *MakeShmLink(segment, std::move(sockets.a), ShmLinkOptions());
      RecordingSink sink;
      link->SetSink(&sink);
      Frame frame;
      frame.type = kReservedType;
      frame.words[1] = word;
      frame.words[2] = 17;
      if (by_ring) {
        RingWriter writer(segment->ring_head(1), segment->ring_data(1),
                          segment->ring_bytes());
        ASSERT_EQ(writer.Put(frame, nullptr), RingWriter::Result::kDone);
        writer.Publish();
      } else {
        // Sent without a file descriptor.
        ASSERT_EQ(::write(sockets.b.get(), &frame, sizeof(frame)),
                  static_cast<ssize_t>(sizeof(frame)));
      }
      // Frames that announce a descriptor, or that take back a range which was
      // never lent, are harmless.
      if (by_ring && (word == 1 || word == 4)) continue;
      ASSERT_TRUE(Pump({link.get()}, [&] { return sink.losses() == 1; }))
          << word << by_ring;
      EXPECT_TRUE(absl::IsDataLoss(sink.why())) << sink.why();
      EXPECT_EQ(link->Borrow(17, 0, 0), nullptr);
    }
  }
}

TEST(LentRangesTest, CountsNoAnswerTwice) {
  LentRanges lent;
  EXPECT_FALSE(lent.Answered(1, true).ok());
  EXPECT_EQ(lent.Lend(1), LentRanges::State::kOffer);
  EXPECT_EQ(lent.Lend(1), LentRanges::State::kAsked);
  EXPECT_FALSE(*lent.Answered(1, true));
  EXPECT_EQ(lent.Lend(1), LentRanges::State::kReady);
  EXPECT_FALSE(lent.Answered(1, true).ok());
  EXPECT_TRUE(lent.TakeBack(1));
  EXPECT_FALSE(lent.TakeBack(1));

  // The range is taken back before the answer arrives, after which the peer is
  // notified.
  EXPECT_EQ(lent.Lend(2), LentRanges::State::kOffer);
  EXPECT_FALSE(lent.TakeBack(2));
  EXPECT_TRUE(*lent.Answered(2, true));
  EXPECT_EQ(lent.Lend(3), LentRanges::State::kOffer);
  EXPECT_FALSE(*lent.Answered(3, false));
  EXPECT_EQ(lent.Lend(3), LentRanges::State::kRefused);
}

TEST(LentRangesTest, HasALimit) {
  LentRanges lent;
  for (std::uint64_t id = 1; id <= kLentRangesMax; ++id) {
    ASSERT_EQ(lent.Lend(id), LentRanges::State::kOffer);
  }
  EXPECT_EQ(lent.Lend(kLentRangesMax + 1), LentRanges::State::kRefused);
}

TEST(BorrowedRangesTest, RefusesWhatIsNoSealedFile) {
  BorrowedRanges borrowed;
  base::OwnedFd open(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(borrowed.Add(1, std::move(open))));
  SocketPair sockets = MakeSockets();
  EXPECT_TRUE(absl::IsInvalidArgument(borrowed.Add(2, std::move(sockets.a))));
  SealedFile file = *SealedFile::Create("test", 4096);
  EXPECT_TRUE(borrowed.Add(3, base::OwnedFd(::dup(file.fd()))).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      borrowed.Add(3, base::OwnedFd(::dup(file.fd())))));
}

}  // namespace
}  // namespace troupe::comm
