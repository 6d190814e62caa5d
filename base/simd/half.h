// The 16-bit floating-point types in vectors of f32, with the same bits as the
// scalar functions of base/half.h.
//
//   Vec v = LoadF16(from);                  // kLanes halves, widened
//   StoreF16(to, v);                        // rounded to nearest, ties to even
//   v = RoundToF16(v);                      // the same rounding, in place

#ifndef BASE_SIMD_HALF_H_
#define BASE_SIMD_HALF_H_

#include "base/simd/f32.h"

#if !defined(__F16C__)
#include "base/half.h"
#endif

namespace troupe::base::simd {
namespace {

using HalfBits = Vector<std::uint16_t, kVectorBytes / 2>;
using WordBits = Vector<std::uint32_t>;

// Written with intrinsics: the compiler splits its own conversion of 16 to 32
// bits.
TROUPE_INLINE Vec LoadBF16(const void* from) {
#if defined(__AVX512F__)
  const __m512i wide =
      _mm512_maskz_cvtepu16_epi32(0xffff, LoadBytes<__m256i>(from));
  return BitCast<Vec>(_mm512_maskz_slli_epi32(0xffff, wide, 16));
#elif defined(__AVX2__)
  const __m256i wide = _mm256_cvtepu16_epi32(LoadBytes<__m128i>(from));
  return BitCast<Vec>(_mm256_slli_epi32(wide, 16));
#else
  using Halves = Vector<std::uint16_t, 16>;
  const Vector<std::uint64_t, 16> low = {LoadBytes<std::uint64_t>(from), 0};
  return BitCast<Vec>(__builtin_shufflevector(Halves{}, BitCast<Halves>(low), 0,
                                              8, 1, 9, 2, 10, 3, 11));
#endif
}
TROUPE_INLINE Vec RoundToBF16(Vec v) {
  const WordBits bits = BitCast<WordBits>(v);
  const WordBits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const WordBits quiet = (bits | 0x400000u) & 0xffff0000u;
  return BitCast<Vec>(v == v ? rounded : quiet);
}
// Stores a vector that RoundToBF16() has rounded.
TROUPE_INLINE void StoreRoundedBF16(void* to, Vec v) {
  const WordBits high = BitCast<WordBits>(v) >> 16;
  StoreBytes(to, __builtin_convertvector(high, HalfBits));
}
TROUPE_INLINE void StoreBF16(void* to, Vec v) {
  StoreRoundedBF16(to, RoundToBF16(v));
}

#if defined(__AVX512F__)

// Uses the masked forms: GCC 12 warns of an undefined operand in the others.
TROUPE_INLINE Vec LoadF16(const void* from) {
  return _mm512_maskz_cvtph_ps(0xffff, LoadBytes<__m256i>(from));
}
TROUPE_INLINE __m256i F16BitsOf(Vec v) {
  return _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT);
}
TROUPE_INLINE void StoreF16(void* to, Vec v) { StoreBytes(to, F16BitsOf(v)); }
TROUPE_INLINE Vec RoundToF16(Vec v) {
  return _mm512_maskz_cvtph_ps(0xffff, F16BitsOf(v));
}

#elif defined(__F16C__)

TROUPE_INLINE Vec LoadF16(const void* from) {
  return _mm256_cvtph_ps(LoadBytes<__m128i>(from));
}
TROUPE_INLINE __m128i F16BitsOf(Vec v) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}
TROUPE_INLINE void StoreF16(void* to, Vec v) { StoreBytes(to, F16BitsOf(v)); }
TROUPE_INLINE Vec RoundToF16(Vec v) { return _mm256_cvtph_ps(F16BitsOf(v)); }

#else

TROUPE_INLINE Vec LoadF16(const void* from) {
  const HalfBits halves = LoadBytes<HalfBits>(from);
  Vec v;
  for (int i = 0; i < kLanes; ++i) v[i] = F32FromF16(halves[i]);
  return v;
}
TROUPE_INLINE void StoreF16(void* to, Vec v) {
  HalfBits halves;
  for (int i = 0; i < kLanes; ++i) halves[i] = F16FromF32(v[i]);
  StoreBytes(to, halves);
}
TROUPE_INLINE Vec RoundToF16(Vec v) {
  for (int i = 0; i < kLanes; ++i) v[i] = F32FromF16(F16FromF32(v[i]));
  return v;
}

#endif

}  // namespace
}  // namespace troupe::base::simd

#endif  // BASE_SIMD_HALF_H_
