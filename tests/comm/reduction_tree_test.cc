#include "comm/reduction/reduction_tree.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::bf16;
using nn::DType;
using nn::Tensor;

std::vector<base::CpuIsa> SetsHere() {
  std::vector<base::CpuIsa> sets = {base::CpuIsa::kPlain};
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx2) {
    sets.push_back(base::CpuIsa::kAvx2);
  }
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx512) {
    sets.push_back(base::CpuIsa::kAvx512);
  }
  return sets;
}

Tensor Copy(const Tensor& from, nn::Allocator& allocator) {
  const Tensor to = Tensor::Empty(from.shape(), from.dtype(), allocator);
  if (from.bytes() > 0) std::memcpy(to.raw(), from.raw(), from.bytes());
  return to;
}

// Reduces `ranges` in place: each gets the result.
void ReduceInPlace(base::CpuIsa set, ReduceOp op,
                   const std::vector<Tensor>& ranges) {
  std::vector<void*> pointers;
  for (const Tensor& range : ranges) pointers.push_back(range.raw());
  const std::vector<const void*> sources(pointers.begin(), pointers.end());
  ReduceTreeOn(
      set, Reduction{op, ranges[0].dtype(), static_cast<int>(ranges.size())},
      sources, absl::MakeSpan(pointers), ranges[0].numel());
}

void CompareWithNaive(ReduceOp op, DType dtype, int n, std::int64_t count) {
  nn::CachingAllocator allocator;
  std::vector<Tensor> inputs;
  for (int r = 0; r < n; ++r) {
    inputs.push_back(TestRange(dtype, count, /*seed=*/n, r, allocator));
  }
  const Tensor expected = ExpectedResult(op, inputs, allocator);
  for (base::CpuIsa set : SetsHere()) {
    std::vector<Tensor> ranges;
    for (const Tensor& input : inputs) {
      ranges.push_back(Copy(input, allocator));
    }
    ReduceInPlace(set, op, ranges);
    for (int r = 0; r < n; ++r) {
      EXPECT_TRUE(nn::BitEqual(ranges[r], expected))
          << ReduceOpName(op) << " of " << nn::DTypeName(dtype) << " x "
          << count << ", rank " << r << " of " << n << ", instruction set "
          << static_cast<int>(set);
    }
  }
}

TEST(ReductionTree, EqualsTheNaiveTreeOnEveryInstructionSet) {
  for (DType dtype : kAllDTypes) {
    for (ReduceOp op : kAllOps) {
      if (!CheckReduction(op, dtype).ok()) continue;
      for (int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31}) {
        for (std::int64_t count : {0, 1, 3, 64, 1000}) {
          CompareWithNaive(op, dtype, n, count);
        }
      }
    }
  }
}

TEST(ReductionTree, TakesAsManySourcesAsAGroupMayHave) {
  CompareWithNaive(ReduceOp::kSum, DType::kF32, kReductionSourcesMax, 1500);
  CompareWithNaive(ReduceOp::kAvg, DType::kBF16, 255, 1500);
}

TEST(ReductionTree, SplitsAtTheLargestPowerOfTwoBelow) {
  std::string splits;
  for (int n = 2; n <= 10; ++n) absl::StrAppend(&splits, TreeSplit(n), " ");
  EXPECT_EQ(splits, "1 2 2 4 4 4 4 8 8 ");
}

// Returns the reduction of one element per source.
template <typename T>
T Reduced(ReduceOp op, std::vector<T> values) {
  std::vector<const void*> sources;
  for (const T& value : values) sources.push_back(&value);
  T result;
  void* destination = &result;
  ReduceTree(
      Reduction{op, nn::DTypeOf<T>::value, static_cast<int>(values.size())},
      sources, absl::MakeSpan(&destination, 1), 1);
  return result;
}

TEST(ReductionTree, AddsInTheOrderOfTheTree) {
  // 2^24 + 1 rounds to 2^24, 2^24 + 2 is exact: single ones are lost, pairs are
  // not.
  EXPECT_EQ(Reduced<float>(ReduceOp::kSum, {0x1p24f, 1, 1}), 0x1p24f);
  EXPECT_EQ(Reduced<float>(ReduceOp::kSum, {0x1p24f, 0, 1, 1}), 0x1p24f + 2);
  EXPECT_EQ(Reduced<float>(ReduceOp::kSum, {0x1p24f, 1, 1, 1, 1}), 0x1p24f + 4);
}

TEST(ReductionTree, RoundsEachNodeToTheDType) {
  // bf16 has 8 significant bits: 256 + 1 is a tie, which rounds to even.
  // Without rounding at each node, the sum would be 259, rounded to 260.
  const auto sum = [](std::vector<float> values) {
    std::vector<bf16> narrow;
    for (float value : values) narrow.push_back(bf16::FromFloat(value));
    return Reduced(ReduceOp::kSum, narrow).ToFloat();
  };
  EXPECT_EQ(sum({256, 1}), 256);
  EXPECT_EQ(sum({256, 1, 1}), 256);
  EXPECT_EQ(sum({256, 0, 1, 1}), 258);
  EXPECT_EQ(sum({256, 1, 1, 1}), 258);
  EXPECT_EQ(sum({258, 1}), 260);
}

TEST(ReductionTree, DividesAnAverageOnceAtTheRoot) {
  EXPECT_EQ(Reduced<float>(ReduceOp::kAvg, {1, 1, 5}), 7.0f / 3);
  EXPECT_EQ(Reduced<float>(ReduceOp::kAvg, {1, 2}), 1.5f);
  EXPECT_EQ(Reduced<std::int32_t>(ReduceOp::kAvg, {-1, -2}), -1);
}

TEST(ReductionTree, CombinesTheBitsOfIntegers) {
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(Reduced(ReduceOp::kBand, Bytes{0xff, 0x3c, 0xf4}), 0x34);
  EXPECT_EQ(Reduced(ReduceOp::kBor, Bytes{0x01, 0x30, 0x80}), 0xb1);
  EXPECT_EQ(Reduced(ReduceOp::kBxor, Bytes{0x0f, 0x3c, 0x01}), 0x32);
  using Words = std::vector<std::int64_t>;
  EXPECT_EQ(Reduced(ReduceOp::kBand, Words{-1, -2, 0x7000000000000001}),
            0x7000000000000000);
}

TEST(ReductionTree, InnerNodesMakeUpTheRoot) {
  const float values[3] = {1.0f, 0x1p-24f, 3.0f};
  const void* left[2] = {&values[0], &values[1]};
  float part;
  void* destination = &part;
  ReduceTree(Reduction{ReduceOp::kAvg, DType::kF32, /*ranks=*/0}, left,
             absl::MakeSpan(&destination, 1), 1);
  const void* both[2] = {&part, &values[2]};
  ReduceTree(Reduction{ReduceOp::kAvg, DType::kF32, /*ranks=*/3}, both,
             absl::MakeSpan(&destination, 1), 1);
  EXPECT_EQ(part, Reduced<float>(ReduceOp::kAvg, {1.0f, 0x1p-24f, 3.0f}));
}

TEST(ReductionTree, MinAndMaxGiveNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(Reduced<float>(op, {nan, 1})));
    EXPECT_TRUE(std::isnan(Reduced<float>(op, {1, nan})));
    EXPECT_TRUE(std::isnan(Reduced<float>(op, {1, 2, nan, 4, 5})));
  }
}

TEST(ReductionTree, NamesWhatADTypeLacks) {
  EXPECT_EQ(CheckReduction(ReduceOp::kAvg, DType::kU8).message(),
            "u8 has no avg; widen it first");
  EXPECT_EQ(CheckReduction(ReduceOp::kProduct, DType::kU8).message(),
            "u8 has no product; widen it first");
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    EXPECT_EQ(CheckReduction(ReduceOp::kBxor, dtype).message(),
              absl::StrCat(nn::DTypeName(dtype),
                           " has no bxor; take it of integers"));
  }
}

}  // namespace
}  // namespace troupe::comm
