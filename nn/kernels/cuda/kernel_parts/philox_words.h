// Random numbers on a GPU, with the same draws as nn/random/philox.h.
//
//   const DeviceDraws draws(mask.draws, place);       // on the host
//   const DeviceDraws now = draws.Now();              // in a kernel
//   const uint4 words = now.Block(sample, block);     // draws 4 * block .. + 3
//
// Philox4x32-10 of Salmon et al. 2011, sec. 4.3.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_PHILOX_WORDS_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_PHILOX_WORDS_H_

#include <cstdint>

#include "base/cuda/launch.h"
#include "nn/random/sample_draws.h"

namespace troupe::nn::cuda {

class DeviceDraws {
 public:
  // `place` is DropoutMask::place, or null.
  DeviceDraws(const SampleDraws& draws, const std::int32_t* place)
      : key0_(draws.key.words[0]),
        key1_(draws.key.words[1]),
        first_(draws.first),
        place_(place) {}

  // Returns the draws for the step and position that `place` holds when the
  // kernel runs.
  __device__ __forceinline__ DeviceDraws Now() const {
    DeviceDraws now = *this;
    if (place_ == nullptr) return now;
    now.first_.step = static_cast<unsigned>(place_[0]);
    now.first_.position = static_cast<unsigned>(place_[1]);
    return now;
  }

  // Returns the draws for another step.
  __device__ __forceinline__ DeviceDraws AtStep(unsigned step) const {
    DeviceDraws at = *this;
    at.first_.step = step;
    return at;
  }

  // Returns the four words of draws 4 * block to 4 * block + 3 of the sample.
  __device__ __forceinline__ uint4 Block(std::int64_t sample,
                                         std::int64_t block) const {
    uint4 x = make_uint4(static_cast<unsigned>(block), first_.step,
                         first_.position + static_cast<unsigned>(sample),
                         first_.path);
    unsigned key0 = key0_, key1 = key1_;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      x = Round(x, key0, key1);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    return x;
  }

 private:
  static __device__ __forceinline__ uint4 Round(uint4 x, unsigned key0,
                                                unsigned key1) {
    const std::uint64_t a = std::uint64_t{x.x} * 0xD2511F53u;
    const std::uint64_t b = std::uint64_t{x.z} * 0xCD9E8D57u;
    return make_uint4(
        static_cast<unsigned>(b >> 32) ^ x.y ^ key0, static_cast<unsigned>(b),
        static_cast<unsigned>(a >> 32) ^ x.w ^ key1, static_cast<unsigned>(a));
  }

  unsigned key0_, key1_;
  RandomPosition first_;
  const std::int32_t* place_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_PHILOX_WORDS_H_
