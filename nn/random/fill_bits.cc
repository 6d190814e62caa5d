// FillBits32(): kLanes blocks of Philox4x32-10 at once, as loops over lanes,
// which the compiler turns into vectors.

#include <algorithm>

#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

constexpr int kLanes = 16;
constexpr std::size_t kWords = 4 * kLanes;

// Salmon et al. 2011, sec. 4.3: ten rounds, two multiplications each. Writes
// kWords words.
void FillBlocks(std::array<std::uint32_t, 2> key,
                const RandomPosition& position, std::uint32_t first_block,
                std::uint32_t* words) {
  std::uint32_t x0[kLanes], x1[kLanes], x2[kLanes], x3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    x0[i] = first_block + static_cast<std::uint32_t>(i);
    x1[i] = position.step;
    x2[i] = position.position;
    x3[i] = position.path;
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * x0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * x2[i];
      x0[i] = static_cast<std::uint32_t>(b >> 32) ^ x1[i] ^ key[0];
      x1[i] = static_cast<std::uint32_t>(b);
      x2[i] = static_cast<std::uint32_t>(a >> 32) ^ x3[i] ^ key[1];
      x3[i] = static_cast<std::uint32_t>(a);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (int i = 0; i < kLanes; ++i) {
    words[4 * i] = x0[i];
    words[4 * i + 1] = x1[i];
    words[4 * i + 2] = x2[i];
    words[4 * i + 3] = x3[i];
  }
}

}  // namespace

void FillBits32(const RandomKey& key, const RandomPosition& position,
                std::uint32_t first_block, absl::Span<std::uint32_t> words) {
  std::size_t done = 0;
  for (; done + kWords <= words.size(); done += kWords) {
    FillBlocks(key.words, position, first_block, words.data() + done);
    first_block += kLanes;
  }
  if (done == words.size()) return;
  std::uint32_t rest[kWords];
  FillBlocks(key.words, position, first_block, rest);
  std::copy_n(rest, words.size() - done, words.data() + done);
}

}  // namespace troupe::nn
