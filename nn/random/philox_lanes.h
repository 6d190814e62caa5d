// The body of fill_loops_*.cc: Philox4x32-10 (Salmon et al. 2011, sec. 4.3) on
// as many blocks at once as the instruction set of the file has lanes for. All
// functions have internal linkage, so that the linker cannot merge an AVX-512
// body into a program for another CPU.

#ifndef NN_RANDOM_PHILOX_LANES_H_
#define NN_RANDOM_PHILOX_LANES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/simd/words.h"
#include "nn/random/fill_loops.h"

namespace troupe::nn {
namespace {

using base::simd::AddWords;
using base::simd::CountWords;
using base::simd::HighWords;
using base::simd::MultiplyWords;
using base::simd::SameWord;
using base::simd::StorePairs;
using base::simd::Words;
using base::simd::XorWords;

constexpr int kLanes = base::simd::kWordLanes;  // blocks in a vector

// Number of independent chains of operations: a multiplication takes five
// cycles, and two can begin in each.
constexpr int kChains = 4;
constexpr int kBlocks = kChains * kLanes;
constexpr std::size_t kWords = 4 * kBlocks;

inline void FillBlocks(const FirstDraw& first, std::uint32_t block,
                       std::uint32_t* words) {
  Words x0[kChains], x1[kChains], x2[kChains], x3[kChains];
  for (int i = 0; i < kChains; ++i) {
    const auto begin = block + static_cast<std::uint32_t>(i * kLanes);
    x0[i] = AddWords(SameWord(begin), CountWords());
    x1[i] = SameWord(first.step);
    x2[i] = SameWord(first.position);
    x3[i] = SameWord(first.path);
  }
  std::uint32_t key0 = first.key[0], key1 = first.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kChains; ++i) {
      const Words a = MultiplyWords(x0[i], SameWord(0xD2511F53u));
      const Words b = MultiplyWords(x2[i], SameWord(0xCD9E8D57u));
      x0[i] = XorWords(HighWords(b), x1[i], SameWord(key0));
      x1[i] = b;
      x2[i] = XorWords(HighWords(a), x3[i], SameWord(key1));
      x3[i] = a;
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kChains; ++i) {
    std::uint64_t front[kLanes], back[kLanes];
    StorePairs(x0[i], x1[i], front);
    StorePairs(x2[i], x3[i], back);
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
