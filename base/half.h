// The 16-bit floating-point types, as bits: f16 (IEEE 754 binary16) and bf16
// (the upper half of an f32).
//
//   std::uint16_t half = F16FromF32(1.5f);            // 0x3e00
//   float value = F32FromF16(half);                   // exact
//   half = F16FromF32(RoundToOdd(0.1));               // an f64, rounded once
//
// Rounds to nearest, ties to even; values out of range become infinity; NaN
// stays NaN, quiet, with as much of its payload as fits. The results equal
// those of the CPU's own conversions (VCVTPS2PH, VCVTPH2PS), which
// base/simd/half.h uses if available: there is one conversion in Troupe, in two
// forms.

#ifndef BASE_HALF_H_
#define BASE_HALF_H_

#include <cstdint>
#include <cstring>

namespace troupe::base {

std::uint16_t F16FromF32(float value);
float F32FromF16(std::uint16_t half);

std::uint16_t BF16FromF32(float value);
inline float F32FromBF16(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Returns `value` as f32, rounded to odd: an inexact result has its last bit
// set, so that rounding it again, to 16 bits, gives the same as rounding the
// f64 itself (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded
// sums").
float RoundToOdd(double value);

}  // namespace troupe::base

#endif  // BASE_HALF_H_
