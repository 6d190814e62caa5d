// A vector of f32, in the instruction set that this file is compiled for.
//
//   Vec sum = Zero();
//   for (; i + kLanes <= n; i += kLanes) sum = Fma(Load(x + i), a, sum);
//   sum = Fma(LoadSome(x + i, First(n - i)), a, sum);   // the tail
//
// AVX-512 (16 lanes), AVX2 with FMA (8) or portable (4). In the portable set
// Fma rounds twice; within one instruction set the same element gets the same
// bits in a full vector and in a tail.

#ifndef BASE_SIMD_F32_H_
#define BASE_SIMD_F32_H_

#include <cstdint>

#include "base/simd/vector.h"

namespace troupe::base::simd {
namespace {

using Vec = Vector<float>;
constexpr Index kLanes = kVectorBytes / sizeof(float);

TROUPE_INLINE Vec Zero() { return Vec{}; }
TROUPE_INLINE Vec Load(const float* p) { return LoadBytes<Vec>(p); }
TROUPE_INLINE void Store(float* p, Vec v) { StoreBytes(p, v); }
TROUPE_INLINE Vec Plus(Vec a, Vec b) { return a + b; }
TROUPE_INLINE Vec Minus(Vec a, Vec b) { return a - b; }
TROUPE_INLINE Vec Times(Vec a, Vec b) { return a * b; }
TROUPE_INLINE Vec Over(Vec a, Vec b) { return a / b; }
// Integers, as the bits of a vector.
TROUPE_INLINE Vec LoadBits(const std::int32_t* p) { return LoadBytes<Vec>(p); }

#if defined(__AVX512F__)

constexpr int kRegisters = 32;
using Mask = __mmask16;

// Selects the first `count` lanes; none if negative, all from kLanes on.
TROUPE_INLINE Mask First(Index count) {
  return count >= kLanes ? Mask(0xffff)
                         : Mask((1u << (count < 0 ? 0 : count)) - 1);
}
TROUPE_INLINE Vec Set(float a) { return _mm512_set1_ps(a); }
// Lanes outside the mask are neither read nor written; they load as 0.
TROUPE_INLINE Vec LoadSome(const float* p, Mask m) {
  return _mm512_maskz_loadu_ps(m, p);
}
TROUPE_INLINE void StoreSome(float* p, Vec v, Mask m) {
  _mm512_mask_storeu_ps(p, m, v);
}
// The same for integers, as the bits of a vector.
TROUPE_INLINE Vec LoadSomeBits(const std::int32_t* p, Mask m) {
  return BitCast<Vec>(_mm512_maskz_loadu_epi32(m, p));
}
TROUPE_INLINE void StoreSomeBits(std::int32_t* p, Vec v, Mask m) {
  _mm512_mask_storeu_epi32(p, m, BitCast<__m512i>(v));
}
// a * b + c
TROUPE_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// Returns the larger; the second if they are equal or either is NaN.
TROUPE_INLINE Vec MaxOrSecond(Vec a, Vec b) { return _mm512_max_ps(a, b); }
// Rounds to nearest; NaN if negative.
TROUPE_INLINE Vec SquareRoot(Vec a) { return _mm512_sqrt_ps(a); }
// value where test > 0 or NaN, else 0
TROUPE_INLINE Vec WherePositiveOrNan(Vec test, Vec value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(test, Zero(), _CMP_NLE_UQ),
                             value);
}
TROUPE_INLINE float SumLanes(Vec v) { return _mm512_reduce_add_ps(v); }
TROUPE_INLINE float MaxLanes(Vec v) { return _mm512_reduce_max_ps(v); }

// One truth value per lane.
using Truth = __mmask16;
TROUPE_INLINE Truth GreaterOrNan(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ);
}
TROUPE_INLINE Truth Greater(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
TROUPE_INLINE Truth IsNan(Vec a) {
  return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
TROUPE_INLINE Truth SameBits(Vec a, Vec b) {
  return _mm512_cmpeq_epi32_mask(_mm512_castps_si512(a),
                                 _mm512_castps_si512(b));
}
TROUPE_INLINE Truth Either(Truth a, Truth b) { return Truth(a | b); }
TROUPE_INLINE Vec Choose(Truth t, Vec yes, Vec no) {
  return _mm512_mask_mov_ps(no, t, yes);
}
// Takes lanes inside the mask from `in`, the others from `out`.
TROUPE_INLINE Vec KeepSome(Vec in, Mask m, Vec out) {
  return _mm512_mask_mov_ps(out, m, in);
}
// Sets the bits of every lane to an integer.
TROUPE_INLINE Vec SetBits(std::int32_t i) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(i));
}
TROUPE_INLINE Vec AddBits(Vec v, std::int32_t i) {
  return _mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(i)));
}
// Sets lane i to element choice[i] of the kLanes of `a` followed by those of
// `b`.
TROUPE_INLINE Vec PickFromTwo(Vec a, Vec b, const std::int32_t* choice) {
  return _mm512_permutex2var_ps(a, _mm512_loadu_si512(choice), b);
}
// 2^n, where v is 1.5 * 2^23 + n and -127 < n < 128.
TROUPE_INLINE Vec PowerOfTwo(Vec v) {
  return _mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(v), 23),
                       _mm512_set1_epi32(0x3f800000)));
}

// A sum of squares in f64, lane by lane.
struct SquareSum {
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();

  TROUPE_INLINE void Add(Vec v) {
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  TROUPE_INLINE double Total() const {
    return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
  }
};

#elif defined(__AVX2__)

constexpr int kRegisters = 16;
using Mask = __m256i;

TROUPE_INLINE Mask First(Index count) {
  const int n = static_cast<int>(count < 0 ? 0 : Min(count, kLanes));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TROUPE_INLINE Vec Set(float a) { return _mm256_set1_ps(a); }
TROUPE_INLINE Vec LoadSome(const float* p, Mask m) {
  return _mm256_maskload_ps(p, m);
}
TROUPE_INLINE void StoreSome(float* p, Vec v, Mask m) {
  _mm256_maskstore_ps(p, m, v);
}
TROUPE_INLINE Vec LoadSomeBits(const std::int32_t* p, Mask m) {
  return BitCast<Vec>(_mm256_maskload_epi32(p, m));
}
TROUPE_INLINE void StoreSomeBits(std::int32_t* p, Vec v, Mask m) {
  _mm256_maskstore_epi32(p, m, BitCast<__m256i>(v));
}
TROUPE_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
TROUPE_INLINE Vec MaxOrSecond(Vec a, Vec b) { return _mm256_max_ps(a, b); }
TROUPE_INLINE Vec SquareRoot(Vec a) { return _mm256_sqrt_ps(a); }
TROUPE_INLINE Vec WherePositiveOrNan(Vec test, Vec value) {
  return _mm256_and_ps(_mm256_cmp_ps(test, Zero(), _CMP_NLE_UQ), value);
}
TROUPE_INLINE float SumLanes(Vec v) {
  const __m128 half =
      _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}
TROUPE_INLINE float MaxLanes(Vec v) {
  const __m128 half =
      _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

using Truth = __m256;
TROUPE_INLINE Truth GreaterOrNan(Vec a, Vec b) {
  return _mm256_cmp_ps(a, b, _CMP_NLE_UQ);
}
TROUPE_INLINE Truth Greater(Vec a, Vec b) {
  return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
TROUPE_INLINE Truth IsNan(Vec a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
TROUPE_INLINE Truth SameBits(Vec a, Vec b) {
  return _mm256_castsi256_ps(
      _mm256_cmpeq_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
TROUPE_INLINE Truth Either(Truth a, Truth b) { return _mm256_or_ps(a, b); }
TROUPE_INLINE Vec Choose(Truth t, Vec yes, Vec no) {
  return _mm256_blendv_ps(no, yes, t);
}
TROUPE_INLINE Vec KeepSome(Vec in, Mask m, Vec out) {
  return _mm256_blendv_ps(out, in, _mm256_castsi256_ps(m));
}
TROUPE_INLINE Vec SetBits(std::int32_t i) {
  return _mm256_castsi256_ps(_mm256_set1_epi32(i));
}
TROUPE_INLINE Vec PowerOfTwo(Vec v) {
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(v), 23),
                       _mm256_set1_epi32(0x3f800000)));
}

struct SquareSum {
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();

  TROUPE_INLINE void Add(Vec v) {
    const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
    low = _mm256_fmadd_pd(a, a, low);
    high = _mm256_fmadd_pd(b, b, high);
  }
  TROUPE_INLINE double Total() const {
    const __m256d sum = _mm256_add_pd(low, high);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
};

#else

constexpr int kRegisters = 16;
using Mask = int;  // number of selected lanes

TROUPE_INLINE Mask First(Index count) {
  return static_cast<int>(count < 0 ? 0 : Min(count, kLanes));
}
TROUPE_INLINE Vec Set(float a) { return Vec{a, a, a, a}; }
TROUPE_INLINE Vec LoadSome(const float* p, Mask m) {
  if (m == kLanes) return Load(p);
  Vec v = Zero();
  for (int i = 0; i < m; ++i) v[i] = p[i];
  return v;
}
TROUPE_INLINE void StoreSome(float* p, Vec v, Mask m) {
  if (m == kLanes) return Store(p, v);
  for (int i = 0; i < m; ++i) p[i] = v[i];
}
TROUPE_INLINE Vec LoadSomeBits(const std::int32_t* p, Mask m) {
  if (m == kLanes) return LoadBits(p);
  Vector<std::int32_t> bits = {};
  for (int i = 0; i < m; ++i) bits[i] = p[i];
  return BitCast<Vec>(bits);
}
TROUPE_INLINE void StoreSomeBits(std::int32_t* p, Vec v, Mask m) {
  if (m == kLanes) return StoreBytes(p, v);
  const auto bits = BitCast<Vector<std::int32_t>>(v);
  for (int i = 0; i < m; ++i) p[i] = bits[i];
}
TROUPE_INLINE Vec Fma(Vec a, Vec b, Vec c) { return a * b + c; }
TROUPE_INLINE Vec MaxOrSecond(Vec a, Vec b) { return a > b ? a : b; }
TROUPE_INLINE Vec SquareRoot(Vec a) {
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
TROUPE_INLINE Vec WherePositiveOrNan(Vec test, Vec value) {
  return test <= 0.0f ? Zero() : value;
}
TROUPE_INLINE float SumLanes(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
TROUPE_INLINE float MaxLanes(Vec v) {
  const float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
  return a > b ? a : b;
}

using Truth = Vector<std::int32_t>;
TROUPE_INLINE Truth GreaterOrNan(Vec a, Vec b) { return ~(a <= b); }
TROUPE_INLINE Truth Greater(Vec a, Vec b) { return a > b; }
TROUPE_INLINE Truth IsNan(Vec a) { return a != a; }
TROUPE_INLINE Truth SameBits(Vec a, Vec b) {
  return reinterpret_cast<Truth>(a) == reinterpret_cast<Truth>(b);
}
TROUPE_INLINE Truth Either(Truth a, Truth b) { return a | b; }
TROUPE_INLINE Vec Choose(Truth t, Vec yes, Vec no) { return t ? yes : no; }
TROUPE_INLINE Vec KeepSome(Vec in, Mask m, Vec out) {
  for (int i = 0; i < m; ++i) out[i] = in[i];
  return out;
}
TROUPE_INLINE Vec SetBits(std::int32_t i) {
  return reinterpret_cast<Vec>(Truth{i, i, i, i});
}
TROUPE_INLINE Vec PowerOfTwo(Vec v) {
  // Unsigned, since the bits of v above the number are shifted out.
  using Bits = Vector<std::uint32_t>;
  return reinterpret_cast<Vec>((reinterpret_cast<Bits>(v) << 23) + 0x3f800000u);
}

struct SquareSum {
  double lanes[4] = {0, 0, 0, 0};

  TROUPE_INLINE void Add(Vec v) {
    for (int i = 0; i < 4; ++i) {
      const double wide = v[i];
      lanes[i] += wide * wide;
    }
  }
  TROUPE_INLINE double Total() const {
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }
};

#endif

}  // namespace
}  // namespace troupe::base::simd

#endif  // BASE_SIMD_F32_H_
