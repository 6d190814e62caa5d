#include "tests/nn/testing/tensor_values.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(TensorValues, RoundTripInEveryDType) {
  CachingAllocator allocator;
  const std::vector<double> values = {0, 1, 2, 127};
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                      DType::kI32, DType::kI64, DType::kU8}) {
    EXPECT_EQ(ValuesOf(MakeTensor({2, 2}, dtype, values, allocator)), values);
  }
}

TEST(NormalDraws, BelongToTheirName) {
  const std::vector<double> draws = NormalDraws("x", 100);
  EXPECT_EQ(NormalDraws("x", 100), draws);
  EXPECT_NE(NormalDraws("y", 100), draws);
  // Shorter and longer lists begin with the same draws.
  const std::vector<double> fewer = NormalDraws("x", 10);
  const std::vector<double> more = NormalDraws("x", 1000);
  EXPECT_EQ(fewer, std::vector<double>(draws.begin(), draws.begin() + 10));
  EXPECT_EQ(draws, std::vector<double>(more.begin(), more.begin() + 100));
}

TEST(Compare, MeasuresNormAndMaximum) {
  const Difference d = Compare({3, 4, 1}, {3, 4, 0});
  EXPECT_DOUBLE_EQ(d.norm, 0.2);
  EXPECT_DOUBLE_EQ(d.max, 0.25);
}

TEST(Compare, NansAndInfinitiesMatchOnlyThemselves) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Compare({nan, inf, -inf, 1}, {nan, inf, -inf, 1}).max, 0);
  EXPECT_EQ(Compare({nan}, {1}).max, inf);
  EXPECT_EQ(Compare({1}, {nan}).norm, inf);
  EXPECT_EQ(Compare({inf}, {-inf}).max, inf);
}

TEST(Near, ComparesSizesToo) {
  EXPECT_FALSE(Near({1}, {1, 1}, 1));
  EXPECT_TRUE(Near({1, 1.01}, {1, 1}, 0.02));
  EXPECT_FALSE(Near({1, 1.01}, {1, 1}, 0.005));
  EXPECT_FALSE(Near({std::nan("")}, {1}, 1e9));
}

}  // namespace
}  // namespace troupe::nn
