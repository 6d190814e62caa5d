#include "nn/random/philox.h"

#include <Random123/philox.h>

#include <cmath>

#include "base/check.h"
#include "nn/random/fill_loops.h"

namespace troupe::nn {
namespace {

FirstDraw First(const RandomKey& key, const RandomPosition& at,
                std::uint32_t block) {
  return {key.words, block, at.step, at.position, at.path};
}

}  // namespace

RandomKey::RandomKey(std::uint64_t seed, Purpose purpose) {
  // One Philox block mixes seed and purpose into the key, so that neighbouring
  // seeds share nothing.
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
       static_cast<std::uint32_t>(purpose), 0x54726f75u}};
  const r123::Philox4x32::key_type key = {{0x7065u, 0x6b657973u}};
  const auto mixed = r123::Philox4x32{}(counter, key);
  words = {mixed[0], mixed[1]};
}

std::uint32_t HashName(absl::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash;
}

void FillBits32(const RandomKey& key, const RandomPosition& position,
                std::uint32_t first_block, absl::Span<std::uint32_t> words) {
  AvailableFillLoops().back()->bits(First(key, position, first_block),
                                    words.data(), words.size());
}

void FillUniformF32(const RandomKey& key, const RandomPosition& position,
                    std::uint32_t first_block, double low, double high,
                    absl::Span<float> values) {
  AvailableFillLoops().back()->uniform(First(key, position, first_block), low,
                                       (high - low) * 0x1p-24, values.data(),
                                       values.size());
}

void RandomStream::Refill() {
  const r123::Philox4x32::ctr_type counter = {
      {block_++, position_.step, position_.position, position_.path}};
  const r123::Philox4x32::key_type key = {{key_.words[0], key_.words[1]}};
  const auto block = r123::Philox4x32{}(counter, key);
  for (int i = 0; i < 4; ++i) words_[i] = block[i];
  next_ = 0;
}

std::uint32_t RandomStream::Bits32() {
  if (next_ == 4) Refill();
  return words_[next_++];
}

std::uint64_t RandomStream::Bits64() {
  const std::uint64_t high = Bits32();
  return (high << 32) | Bits32();
}

float RandomStream::UniformF32() {
  return static_cast<float>(Bits32() >> 8) * 0x1p-24f;
}

double RandomStream::UniformF64() {
  return static_cast<double>(Bits64() >> 11) * 0x1p-53;
}

double RandomStream::Normal() {
  const double u = 1.0 - UniformF64();  // (0, 1]: the logarithm is finite
  const double v = UniformF64();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

std::uint64_t RandomStream::Below(std::uint64_t bound) {
  TROUPE_CHECK(bound > 0, "a draw has at least one outcome");
  // Rejects the draws beyond the largest multiple of bound (Lemire's test
  // without the multiplication: draws are not where time goes).
  const std::uint64_t limit = UINT64_MAX - (UINT64_MAX % bound + 1) % bound;
  std::uint64_t draw = Bits64();
  while (draw > limit) draw = Bits64();
  return draw % bound;
}

}  // namespace troupe::nn
