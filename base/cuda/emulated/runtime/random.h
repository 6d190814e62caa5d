// Random numbers from the seed: SplitMix64 (Steele et al. 2014,
// doi:10.1145/2660193.2660195), equal on every machine.
//
//     SeededRandom random(/*seed=*/7);
//     std::uint64_t which = random.Below(3);  // 0, 1 or 2
//
// Threads: one at a time.

#ifndef BASE_CUDA_EMULATED_RUNTIME_RANDOM_H_
#define BASE_CUDA_EMULATED_RUNTIME_RANDOM_H_

#include <cstdint>

namespace emulated_cuda {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed)
      : state_(seed * 0xD1342543DE82EF95u + 1) {}

  // Returns a number in [0, bound); for a small `bound` the remainder is almost
  // unbiased.
  std::uint64_t Below(std::uint64_t bound) {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (x ^ (x >> 31)) % bound;
  }
  bool OneIn(std::uint64_t bound) { return Below(bound) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_RANDOM_H_
