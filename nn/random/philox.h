// Counter-based random numbers: a draw is a pure function of (key, counter), so
// results do not depend on which rank, thread or order draws them.
//
//   RandomKey init(seed, Purpose::kInitialize);
//   RandomStream draws(init, {0, 0, HashName("0.weight")});
//   float u = draws.UniformF32();             // [0, 1)
//   std::uint64_t k = draws.Below(10);        // 0..9, unbiased
//   std::vector<int> order = {0, 1, 2};
//   draws.Shuffle(order.begin(), order.end());
//
// Philox4x32-10 of Random123 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3", sec. 4.3). key = (seed mixed with purpose); counter =
// (element block, step, position, hash of the module path). Portable: no
// std:: distribution, whose results differ between libraries.

#ifndef NN_RANDOM_PHILOX_H_
#define NN_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::nn {

// Purpose of a draw; different purposes never share numbers.
enum class Purpose : std::uint32_t {
  kInitialize = 1,  // parameters
  kShuffle = 2,     // order of samples
  kData = 3,        // synthetic data sets
  kAugment = 4,     // transforms
  kDropout = 5,
  kTest = 6,
  kTensor = 7,    // tensors of a program's own loop
  kRounding = 8,  // updated parameters
};

struct RandomKey {
  RandomKey(std::uint64_t seed, Purpose purpose);
  std::array<std::uint32_t, 2> words;
};

// Position of a draw within a job. A field without meaning for it is zero.
struct RandomPosition {
  std::uint32_t step = 0;      // step or epoch
  std::uint32_t position = 0;  // in the global batch, or the sample's number
  std::uint32_t path = 0;      // HashName(module path)
};

// FNV-1a, 32 bits: stable across machines and versions.
std::uint32_t HashName(absl::string_view name);

// Writes the words that RandomStream(key, position).Bits32() draws from its
// draw 4 * first_block on; 0.6 ns a word with AVX-512.
void FillBits32(const RandomKey& key, const RandomPosition& position,
                std::uint32_t first_block, absl::Span<std::uint32_t> words);

// Writes the same draws as numbers in [low, high): the upper 24 bits of each,
// scaled in f64 and rounded once to f32 (which can give `high` itself).
void FillUniformF32(const RandomKey& key, const RandomPosition& position,
                    std::uint32_t first_block, double low, double high,
                    absl::Span<float> values);

// An endless sequence of draws at one position. The first one is draw
// 4 * first_block of those of a stream from block 0.
class RandomStream {
 public:
  RandomStream(const RandomKey& key, const RandomPosition& position,
               std::uint32_t first_block = 0)
      : key_(key), position_(position), block_(first_block) {}

  std::uint32_t Bits32();
  std::uint64_t Bits64();
  float UniformF32();   // [0, 1), 24 random bits
  double UniformF64();  // [0, 1), 53 random bits
  double Uniform(double low, double high) {
    return low + (high - low) * UniformF64();
  }
  // Mean 0, variance 1; Box-Muller, of the four draws of a block.
  double Normal();
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), unbiased; bound > 0

  // Fisher-Yates; O(n), portable.
  template <typename Iterator>
  void Shuffle(Iterator begin, Iterator end) {
    for (auto n = end - begin; n > 1; --n) {
      std::swap(begin[n - 1], begin[Below(static_cast<std::uint64_t>(n))]);
    }
  }

 private:
  void Refill();

  RandomKey key_;
  RandomPosition position_;
  std::uint32_t block_;
  std::array<std::uint32_t, 4> words_{};
  int next_ = 4;
};

}  // namespace troupe::nn

#endif  // NN_RANDOM_PHILOX_H_
