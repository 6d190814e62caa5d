// Tests the checksum that owners of parts of a tensor add up.

#include "actors/checkpoint/tensor_hash.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/serialize/tensor_parts.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {
namespace {

// Two blocks of factors, and a word that lacks a byte.
constexpr std::int64_t kBytes = 2 * 4096 + 7;

class SumTest : public testing::Test {
 protected:
  SumTest() {
    for (int i = 0; i < kBytes; ++i) {
      bytes()[i] = static_cast<std::uint8_t>(i * 37 + 11);
    }
  }

  std::uint8_t* bytes() { return whole_.data<std::uint8_t>(); }
  // Returns the sum of the bytes in [begin, end), which lie at the beginning of
  // their part.
  std::uint64_t SumOfRange(std::int64_t begin, std::int64_t end) {
    nn::TensorPart part("", whole_.View({kBytes}));
    part.elements = nn::Tensor::Empty({kBytes}, nn::DType::kU8, allocator_);
    std::copy(bytes() + begin, bytes() + end,
              part.elements.data<std::uint8_t>());
    part.ranges = {{begin, 0, end - begin}};
    return SumOf(part);
  }

  nn::CachingAllocator allocator_;
  nn::Tensor whole_ = nn::Tensor::Empty({kBytes}, nn::DType::kU8, allocator_);
};

// Checkpoints have it: another value would make those on disks unreadable.
TEST_F(SumTest, IsThatOfEarlierPrograms) {
  EXPECT_EQ(HashText(SumOf(whole_)), "89276fdedfcc2ff0");
}

TEST_F(SumTest, IsThatOfPartsCutAtAnyByte) {
  const std::uint64_t want = SumOf(whole_);
  for (const std::int64_t cut :
       {0, 1, 2, 3, 4, 5, 4093, 4095, 4096, 4097, 4099, 8191, 8197, 8198}) {
    EXPECT_EQ(SumOfRange(0, cut) + SumOfRange(cut, kBytes), want) << cut;
  }
  EXPECT_EQ(SumOfRange(kBytes, kBytes), 0u);
}

// Three parts of one byte in three: no part has a whole word.
TEST_F(SumTest, IsThatOfPartsThatTakeTurns) {
  std::uint64_t sum = 0;
  for (int owner = 0; owner < 3; ++owner) {
    nn::TensorPart part("", whole_.View({kBytes}));
    part.ranges.clear();
    for (std::int64_t at = owner; at < kBytes; at += 3) {
      part.ranges.push_back({at, at, 1});
    }
    sum += SumOf(part);
  }
  EXPECT_EQ(sum, SumOf(whole_));
}

TEST_F(SumTest, IsAnotherForBytesThatChangedOrMoved) {
  const std::uint64_t want = SumOf(whole_);
  for (const std::int64_t at : {0, 3, 4095, 4096, 8192, 8198}) {
    bytes()[at] ^= 1;
    EXPECT_NE(SumOf(whole_), want) << at;
    bytes()[at] ^= 1;
  }
  // Bytes of one word, of two words, and of two blocks.
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{
           {0, 1}, {3, 4}, {0, 4}, {1, 4098}, {4094, 8191}}) {
    std::swap(bytes()[a], bytes()[b]);
    EXPECT_NE(SumOf(whole_), want) << a << " and " << b;
    std::swap(bytes()[a], bytes()[b]);
  }
  EXPECT_EQ(SumOf(whole_), want);
}

}  // namespace
}  // namespace troupe::actors
