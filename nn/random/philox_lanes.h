// The body of fill_loops_*.cc: Philox4x32-10 (Salmon et al. 2011, sec. 4.3) on
// as many blocks at once as the instruction set of the file has lanes for. All
// functions have internal linkage, so that the linker cannot merge an AVX-512
// body into a program for another CPU.

#ifndef NN_RANDOM_PHILOX_LANES_H_
#define NN_RANDOM_PHILOX_LANES_H_

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nn/random/fill_loops.h"

namespace troupe::nn {
namespace {

// One word of several blocks: the low half of each 64-bit lane. What lies in
// the high halves means nothing, and nothing reads it.
#if defined(__AVX512F__)
constexpr int kLanes = 8;
using Words = __m512i;
inline Words Same(std::uint32_t word) { return _mm512_set1_epi64(word); }
inline Words Count() { return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0); }
inline Words Plus(Words a, Words b) { return _mm512_add_epi64(a, b); }
inline Words Times(Words a, Words b) { return _mm512_mul_epu32(a, b); }
inline Words High(Words product) { return _mm512_srli_epi64(product, 32); }
inline Words Xor(Words a, Words b, Words c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
// The low halves of `low`, and those of `high` above them.
inline void Store(Words low, Words high, std::uint64_t* to) {
  const Words pairs =
      _mm512_mask_blend_epi32(0xaaaa, low, _mm512_slli_epi64(high, 32));
  _mm512_storeu_si512(to, pairs);
}
#elif defined(__AVX2__)
constexpr int kLanes = 4;
using Words = __m256i;
inline Words Same(std::uint32_t word) { return _mm256_set1_epi64x(word); }
inline Words Count() { return _mm256_set_epi64x(3, 2, 1, 0); }
inline Words Plus(Words a, Words b) { return _mm256_add_epi64(a, b); }
inline Words Times(Words a, Words b) { return _mm256_mul_epu32(a, b); }
inline Words High(Words product) { return _mm256_srli_epi64(product, 32); }
inline Words Xor(Words a, Words b, Words c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
inline void Store(Words low, Words high, std::uint64_t* to) {
  const Words pairs =
      _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
  _mm256_storeu_si256(reinterpret_cast<Words*>(to), pairs);
}
#else
constexpr int kLanes = 1;
using Words = std::uint64_t;
inline Words Same(std::uint32_t word) { return word; }
inline Words Count() { return 0; }
inline Words Plus(Words a, Words b) { return a + b; }
inline Words Times(Words a, Words b) { return (a & 0xffffffffu) * b; }
inline Words High(Words product) { return product >> 32; }
inline Words Xor(Words a, Words b, Words c) { return a ^ b ^ c; }
inline void Store(Words low, Words high, std::uint64_t* to) {
  *to = (low & 0xffffffffu) | high << 32;
}
#endif

// Independent chains of operations: a multiplication takes five cycles, and
// two can begin in each.
constexpr int kChains = 4;
constexpr int kBlocks = kChains * kLanes;
constexpr std::size_t kWords = 4 * kBlocks;

inline void FillBlocks(const FirstDraw& first, std::uint32_t block,
                       std::uint32_t* words) {
  Words x0[kChains], x1[kChains], x2[kChains], x3[kChains];
  for (int i = 0; i < kChains; ++i) {
    const auto begin = block + static_cast<std::uint32_t>(i * kLanes);
    x0[i] = Plus(Same(begin), Count());
    x1[i] = Same(first.step);
    x2[i] = Same(first.position);
    x3[i] = Same(first.path);
  }
  std::uint32_t key0 = first.key[0], key1 = first.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kChains; ++i) {
      const Words a = Times(x0[i], Same(0xD2511F53u));
      const Words b = Times(x2[i], Same(0xCD9E8D57u));
      x0[i] = Xor(High(b), x1[i], Same(key0));
      x1[i] = b;
      x2[i] = Xor(High(a), x3[i], Same(key1));
      x3[i] = a;
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kChains; ++i) {
    std::uint64_t front[kLanes], back[kLanes];
    Store(x0[i], x1[i], front);
    Store(x2[i], x3[i], back);
    for (int j = 0; j < kLanes; ++j, words += 4) {
      words[0] = static_cast<std::uint32_t>(front[j]);
      words[1] = static_cast<std::uint32_t>(front[j] >> 32);
      words[2] = static_cast<std::uint32_t>(back[j]);
      words[3] = static_cast<std::uint32_t>(back[j] >> 32);
    }
  }
}

inline void Bits(const FirstDraw& first, std::uint32_t* words,
                 std::size_t count) {
  std::uint32_t block = first.block;
  for (; count >= kWords; count -= kWords, words += kWords) {
    FillBlocks(first, block, words);
    block += kBlocks;
  }
  if (count == 0) return;
  std::uint32_t rest[kWords];
  FillBlocks(first, block, rest);
  std::copy_n(rest, count, words);
}

inline void Uniform(const FirstDraw& first, double low, double scale,
                    float* values, std::size_t count) {
  std::uint32_t block = first.block;
  std::uint32_t words[kWords];
  while (count > 0) {
    FillBlocks(first, block, words);
    const std::size_t part = std::min(count, kWords);
    for (std::size_t i = 0; i < part; ++i) {
      const auto bits = static_cast<std::int32_t>(words[i] >> 8);
      values[i] = static_cast<float>(low + scale * bits);
    }
    values += part;
    count -= part;
    block += kBlocks;
  }
}

}  // namespace
}  // namespace troupe::nn

#endif  // NN_RANDOM_PHILOX_LANES_H_
