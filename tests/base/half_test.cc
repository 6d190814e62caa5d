// Values and rounding are tested in tests/nn/tensor/dtype_test.cc, the
// conversion of vectors in tests/nn/kernels/cpu/convert_loops_test.cc.

#include "base/half.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

float FloatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(Half, NanKeepsSignAndUpperPayloadAndIsQuiet) {
  EXPECT_EQ(F16FromF32(FloatOf(0xffc02000)), 0xfe01);
  EXPECT_EQ(F16FromF32(FloatOf(0x7f800001)), 0x7e00);
  EXPECT_EQ(F16FromF32(FloatOf(0x7fbfffff)), 0x7fff);
  EXPECT_EQ(BitsOf(F32FromF16(0x7c01)), 0x7fc02000u);
  EXPECT_EQ(BitsOf(F32FromF16(0xfe00)), 0xffc00000u);
  EXPECT_EQ(BF16FromF32(FloatOf(0x7f810000)), 0x7fc1);
  EXPECT_EQ(BitsOf(F32FromBF16(0x7f81)), 0x7f810000u);
}

TEST(RoundToOdd, KeepsWhatF32HoldsAndMarksTheRest) {
  EXPECT_EQ(RoundToOdd(1.5), 1.5f);
  EXPECT_EQ(BitsOf(RoundToOdd(1 + 0x1p-40)), BitsOf(1.0f) + 1);
  EXPECT_EQ(BitsOf(RoundToOdd(1 - 0x1p-40)), BitsOf(1.0f) - 1);
  EXPECT_EQ(BitsOf(RoundToOdd(-1 - 0x1p-40)), BitsOf(-1.0f) + 1);
  EXPECT_TRUE(std::isnan(RoundToOdd(std::nan(""))));
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RoundToOdd(inf), inf);
  EXPECT_EQ(RoundToOdd(1e300), std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace troupe::base
