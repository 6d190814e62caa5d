// A vector of f32 widened to f64, lane by lane: for sums that need more
// precision than f32 has.
//
//   Wide sum = LoadWide(sums);                 // kLanes doubles
//   const Wide v = Widen(Load(x + i));
//   StoreWide(sums, FmaWide(v, v, sum));       // exact products of f32
//
// A product of two f32 is exact in f64, so that FmaWide of widened vectors has
// the same bits in every instruction set.

#ifndef BASE_SIMD_F64_H_
#define BASE_SIMD_F64_H_

#include "base/simd/f32.h"

namespace troupe::base::simd {
namespace {

using Doubles = Vector<double>;

// Lanes 0, 1, ... of a vector: the first half is in `low`.
struct Wide {
  Doubles low, high;
};

TROUPE_INLINE Wide ZeroWide() { return {Doubles{}, Doubles{}}; }
TROUPE_INLINE Wide LoadWide(const double* p) {
  return {LoadBytes<Doubles>(p), LoadBytes<Doubles>(p + kLanes / 2)};
}
TROUPE_INLINE void StoreWide(double* p, Wide v) {
  StoreBytes(p, v.low);
  StoreBytes(p + kLanes / 2, v.high);
}
TROUPE_INLINE Wide PlusWide(Wide a, Wide b) {
  return {a.low + b.low, a.high + b.high};
}

#if defined(__AVX512F__)

TROUPE_INLINE Wide Widen(Vec v) {
  return {_mm512_maskz_cvtps_pd(0xff, _mm512_castps512_ps256(v)),
          _mm512_maskz_cvtps_pd(0xff, _mm512_extractf32x8_ps(v, 1))};
}
TROUPE_INLINE Wide FmaWide(Wide a, Wide b, Wide c) {
  return {_mm512_fmadd_pd(a.low, b.low, c.low),
          _mm512_fmadd_pd(a.high, b.high, c.high)};
}

#elif defined(__AVX2__)

TROUPE_INLINE Wide Widen(Vec v) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(v)),
          _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
}
TROUPE_INLINE Wide FmaWide(Wide a, Wide b, Wide c) {
  return {_mm256_fmadd_pd(a.low, b.low, c.low),
          _mm256_fmadd_pd(a.high, b.high, c.high)};
}

#else

TROUPE_INLINE Wide Widen(Vec v) {
  return {Doubles{v[0], v[1]}, Doubles{v[2], v[3]}};
}
TROUPE_INLINE Wide FmaWide(Wide a, Wide b, Wide c) {
  return {a.low * b.low + c.low, a.high * b.high + c.high};
}

#endif

}  // namespace
}  // namespace troupe::base::simd

#endif  // BASE_SIMD_F64_H_
