// Per-channel values for the loops of channel_loops.h and norm_loops.h, in the
// device's scratch memory.
//
//   TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
//                           ChannelScratch::Zeros(cpu, channels));
//   s.mean[c] = 0.5f;
//   cpu.loops().channel_sums(rows, channels, x, s.sums);
//   const double squares = s.second_sums()[c];
//
// Valid until the next request for the device's scratch memory.

#ifndef NN_KERNELS_CPU_CHANNEL_SCRATCH_H_
#define NN_KERNELS_CPU_CHANNEL_SCRATCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {

struct ChannelScratch {
  // All arrays are padded, and begin as zeros.
  static absl::StatusOr<ChannelScratch> Zeros(CpuDevice& cpu,
                                              std::int64_t channels) {
    ChannelScratch s;
    s.padded = PaddedChannels(channels);
    constexpr std::int64_t kSumFloats = 2 * sizeof(double) / sizeof(float);
    const std::int64_t floats = (kSumFloats + 5) * s.padded;
    TROUPE_ASSIGN_OR_RETURN(float* const memory, cpu.Scratch(floats));
    std::fill_n(memory, floats, 0.0f);
    s.sums = reinterpret_cast<double*>(memory);
    s.mean = memory + kSumFloats * s.padded;
    s.scale = s.mean + s.padded;
    s.shift = s.scale + s.padded;
    s.mean_gradient = s.shift + s.padded;
    s.projected = s.mean_gradient + s.padded;
    return s;
  }

  double* second_sums() const { return sums + padded; }
  ChannelAffine affine() const { return {mean, scale, shift}; }
  ChannelGradientTerms terms() const { return {mean_gradient, projected}; }

  std::int64_t padded = 0;
  double* sums = nullptr;  // two arrays
  float *mean = nullptr, *scale = nullptr, *shift = nullptr;
  float *mean_gradient = nullptr, *projected = nullptr;
};

// gradient (+)= sums, rounded once; does nothing if `gradient` is undefined.
inline void WriteGradient(const double* sums, bool accumulate,
                          Tensor& gradient) {
  if (!gradient.defined()) return;
  float* to = gradient.data<float>();
  for (std::int64_t c = 0; c < gradient.numel(); ++c) {
    to[c] = static_cast<float>((accumulate ? to[c] : 0.0) + sums[c]);
  }
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CHANNEL_SCRATCH_H_
