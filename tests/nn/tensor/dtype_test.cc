#include "nn/tensor/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

// A binary format described by three numbers, from which f64 results follow.
struct Format {
  int mantissa_bits;  // without the hidden one
  int exponent_min;   // the smallest normal number's
  double largest;
};
constexpr Format kF16Format = {10, -14, 65504};
const Format kBF16Format = {7, -126, 0x1.fep127};

// Returns `value` rounded to the format, ties to even: divides by the distance
// between neighbours, rounds to an integer, multiplies back.
double RoundTo(const Format& format, double value) {
  if (value == 0 || std::isnan(value) || std::isinf(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.exponent_min);
  const double quantum = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / quantum) * quantum;
  if (std::fabs(rounded) <= format.largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

float FloatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T>
::testing::AssertionResult RoundsAs(const Format& format, float value) {
  const float got = T::FromFloat(value).ToFloat();
  const double want = RoundTo(format, value);
  const bool same =
      std::isnan(want) ? std::isnan(got)
                       : got == want && std::signbit(got) == std::signbit(want);
  if (same) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << std::hexfloat << value << " became " << got << ", not " << want;
}

// Returns the value of the bits, by the definition of IEEE 754.
double Decode(const Format& format, std::uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int biased = (bits & 0x7fff) >> format.mantissa_bits;
  const int top = 0x7fff >> format.mantissa_bits;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (biased == top) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int hidden = biased == 0 ? 0 : 1 << format.mantissa_bits;
  const int exponent = std::max(biased, 1) - 1 + format.exponent_min;
  return sign * std::ldexp(hidden + mantissa, exponent - format.mantissa_bits);
}

// Checks every value of the format, and every point where rounding changes: all
// halves between neighbours, and the floats beside them.
template <typename T>
void CheckExhaustively(const Format& format) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T element{static_cast<std::uint16_t>(bits)};
    const float value = element.ToFloat();
    const double want = Decode(format, element.bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(T::FromFloat(value).ToFloat())) << bits;
      continue;
    }
    ASSERT_EQ(value, want) << bits;
    ASSERT_EQ(T::FromFloat(value).bits, bits);
    if (std::isinf(want)) continue;
    const int exponent =
        std::max(value == 0 ? format.exponent_min : std::ilogb(value),
                 format.exponent_min);
    const float half =
        std::copysign(std::ldexp(0.5f, exponent - format.mantissa_bits), value);
    const float tie = value + half;
    for (float v : {tie, std::nextafter(tie, 0.0f),
                    std::nextafter(tie, 2 * tie), value + half / 2}) {
      ASSERT_TRUE(RoundsAs<T>(format, v));
    }
  }
}

// Checks one float in 1009.
template <typename T>
void CheckSweep(const Format& format) {
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 1009) {
    const float value = FloatOf(static_cast<std::uint32_t>(bits));
    ASSERT_TRUE(RoundsAs<T>(format, value));
  }
}

TEST(F16, RoundsAtEveryBoundaryAsTheDefinition) {
  CheckExhaustively<f16>(kF16Format);
}
TEST(F16, RoundsAcrossAllFloats) { CheckSweep<f16>(kF16Format); }

TEST(BF16, RoundsAtEveryBoundaryAsTheDefinition) {
  CheckExhaustively<bf16>(kBF16Format);
}
TEST(BF16, RoundsAcrossAllFloats) { CheckSweep<bf16>(kBF16Format); }

TEST(F16, KnownBits) {
  EXPECT_EQ(f16::FromFloat(1.0f).bits, 0x3c00);
  EXPECT_EQ(f16::FromFloat(-2.0f).bits, 0xc000);
  EXPECT_EQ(f16::FromFloat(65504.0f).bits, 0x7bff);
  EXPECT_EQ(f16::FromFloat(65519.996f).bits, 0x7bff);
  EXPECT_EQ(f16::FromFloat(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16::FromFloat(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(f16::FromFloat(0x1p-25f).bits, 0x0000);  // a tie, to even
}

TEST(BF16, KnownBits) {
  EXPECT_EQ(bf16::FromFloat(1.0f).bits, 0x3f80);
  EXPECT_EQ(bf16::FromFloat(3.14159265f).bits, 0x4049);
  EXPECT_EQ(bf16::FromFloat(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(DType, NamesReadBackAndSizesFit) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                      DType::kI32, DType::kI64, DType::kU8}) {
    auto parsed = ParseDType(DTypeName(dtype));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, dtype);
  }
  EXPECT_EQ(SizeOf(DType::kF64), 8u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_TRUE(IsFloating(DType::kF16));
  EXPECT_FALSE(IsFloating(DType::kI64));
}

TEST(DType, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  auto parsed = ParseDType("float");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parsed.status().message(),
            "no dtype is called \"float\"; there are f32, f64, bf16, f16, "
            "i32, i64 and u8");
}

}  // namespace
}  // namespace troupe::nn
