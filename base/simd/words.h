// Words of 32 bits and their products of 64, a word in each 64-bit lane: the
// arithmetic of counter-based random numbers.
//
//   Words product = MultiplyWords(a, SameWord(0xD2511F53u));
//   Words high = HighWords(product);
//
// A word is the low half of its lane; the bits above it are undefined.

#ifndef BASE_SIMD_WORDS_H_
#define BASE_SIMD_WORDS_H_

#include <cstdint>

#include "base/simd/vector.h"

namespace troupe::base::simd {
namespace {

#if defined(__AVX512F__)

constexpr int kWordLanes = 8;
using Words = __m512i;
TROUPE_INLINE Words SameWord(std::uint32_t word) {
  return _mm512_set1_epi64(word);
}
TROUPE_INLINE Words CountWords() {
  return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
}
TROUPE_INLINE Words AddWords(Words a, Words b) {
  return _mm512_add_epi64(a, b);
}
TROUPE_INLINE Words MultiplyWords(Words a, Words b) {
  return _mm512_mul_epu32(a, b);
}
TROUPE_INLINE Words HighWords(Words product) {
  return _mm512_srli_epi64(product, 32);
}
TROUPE_INLINE Words XorWords(Words a, Words b, Words c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
// Stores the words of `low`, each with the word of `high` in the upper half.
TROUPE_INLINE void StorePairs(Words low, Words high, std::uint64_t* to) {
  const Words pairs =
      _mm512_mask_blend_epi32(0xaaaa, low, _mm512_slli_epi64(high, 32));
  _mm512_storeu_si512(to, pairs);
}

#elif defined(__AVX2__)

constexpr int kWordLanes = 4;
using Words = __m256i;
TROUPE_INLINE Words SameWord(std::uint32_t word) {
  return _mm256_set1_epi64x(word);
}
TROUPE_INLINE Words CountWords() { return _mm256_set_epi64x(3, 2, 1, 0); }
TROUPE_INLINE Words AddWords(Words a, Words b) {
  return _mm256_add_epi64(a, b);
}
TROUPE_INLINE Words MultiplyWords(Words a, Words b) {
  return _mm256_mul_epu32(a, b);
}
TROUPE_INLINE Words HighWords(Words product) {
  return _mm256_srli_epi64(product, 32);
}
TROUPE_INLINE Words XorWords(Words a, Words b, Words c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
TROUPE_INLINE void StorePairs(Words low, Words high, std::uint64_t* to) {
  const Words pairs =
      _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), pairs);
}

#else

constexpr int kWordLanes = 1;
using Words = std::uint64_t;
TROUPE_INLINE Words SameWord(std::uint32_t word) { return word; }
TROUPE_INLINE Words CountWords() { return 0; }
TROUPE_INLINE Words AddWords(Words a, Words b) { return a + b; }
TROUPE_INLINE Words MultiplyWords(Words a, Words b) {
  return (a & 0xffffffffu) * b;
}
TROUPE_INLINE Words HighWords(Words product) { return product >> 32; }
TROUPE_INLINE Words XorWords(Words a, Words b, Words c) { return a ^ b ^ c; }
TROUPE_INLINE void StorePairs(Words low, Words high, std::uint64_t* to) {
  *to = (low & 0xffffffffu) | high << 32;
}

#endif

}  // namespace
}  // namespace troupe::base::simd

#endif  // BASE_SIMD_WORDS_H_
