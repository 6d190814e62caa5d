#include "base/half.h"

#include <cmath>
#include <cstring>

namespace troupe::base {
namespace {

std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

std::uint16_t F16FromF32(float value) {
  const std::uint32_t bits = BitsOf(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto signed_half = [sign](std::uint32_t half) {
    return static_cast<std::uint16_t>(sign | half);
  };
  if (magnitude > 0x7f800000u) {  // NaN: quiet, with the payload's upper bits
    return signed_half(0x7e00u | ((magnitude >> 13) & 0x1ffu));
  }
  if (magnitude >= 0x477ff000u) return signed_half(0x7c00u);
  // Below half the smallest.
  if (magnitude < 0x33000001u) return signed_half(0);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Normal numbers drop 13 bits; subnormals drop one more per missing power.
  const int drop = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const std::uint32_t half = 1u << (drop - 1);
  const std::uint32_t rest = mantissa & ((1u << drop) - 1);
  mantissa >>= drop;
  if (rest > half || (rest == half && (mantissa & 1u))) ++mantissa;
  if (exponent < -14) return signed_half(mantissa);
  const std::uint32_t biased = static_cast<std::uint32_t>(exponent + 15) << 10;
  // Adding (not or-ing) carries a rounded-up mantissa into the exponent.
  return signed_half(biased + (mantissa - 0x400u));
}

float F32FromF16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1fu) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return FloatOf(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0) {
    return FloatOf(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  if (mantissa == 0) return FloatOf(sign);
  std::uint32_t power = 113;
  while (!(mantissa & 0x400u)) {
    mantissa <<= 1;
    --power;
  }
  return FloatOf(sign | (power << 23) | ((mantissa & 0x3ffu) << 13));
}

std::uint16_t BF16FromF32(float value) {
  const std::uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN: quiet
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  }
  const std::uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((bits + round) >> 16);
}

float RoundToOdd(double value) {
  float f = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(f) == value) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(value)) {
    f = std::nextafter(f, 0.0f);
  }
  return FloatOf(BitsOf(f) | 1u);
}

}  // namespace troupe::base
