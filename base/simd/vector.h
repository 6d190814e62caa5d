// Vectors of the instruction set that this file is compiled for: 64 bytes with
// AVX-512, 32 with AVX2, 16 otherwise. Loops are written once on them and
// compiled once for each set (base/simd/isa.bzl), and the program chooses
// (base/cpu_isa.h).
//
//   Vector<double> v = LoadBytes<Vector<double>>(from);
//   v = v * v + 1.0;                        // operators, lane by lane
//   v = v > w ? v : w;                      // and selections
//   StoreBytes(to, v);
//
// These are the compiler's vector types, of any element type. base/simd/f32.h
// has the functions for loops of f32, half.h conversions, words.h products of
// integers.
//
// Everything in base/simd is in an unnamed namespace, and calls nothing of the
// standard library: the linker might otherwise keep the AVX-512 form of a
// function that two instruction sets share.

#ifndef BASE_SIMD_VECTOR_H_
#define BASE_SIMD_VECTOR_H_

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define TROUPE_INLINE inline __attribute__((always_inline))
// Placed before a loop over registers, which must be unrolled completely.
#define TROUPE_UNROLL _Pragma("GCC unroll 32")

namespace troupe::base::simd {
namespace {

using Index = std::int64_t;

TROUPE_INLINE constexpr Index Min(Index a, Index b) { return a < b ? a : b; }
TROUPE_INLINE constexpr Index Max(Index a, Index b) { return a > b ? a : b; }
TROUPE_INLINE constexpr Index CeilDiv(Index a, Index b) {
  return (a + b - 1) / b;
}

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T, int kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <typename T, int kBytes = kVectorBytes>
using Vector = typename VectorOf<T, kBytes>::type;

// Requires no alignment.
template <typename V>
TROUPE_INLINE V LoadBytes(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V>
TROUPE_INLINE void StoreBytes(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof(V));
}

template <typename To, typename From>
TROUPE_INLINE To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a cast of bits keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace
}  // namespace troupe::base::simd

#endif  // BASE_SIMD_VECTOR_H_
