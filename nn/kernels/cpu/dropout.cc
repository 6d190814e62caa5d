#include <algorithm>
#include <array>

#include "nn/kernels/cpu/widening.h"
#include "nn/random/philox.h"

namespace troupe::nn::cpu {
namespace {

// Number of draws at a time: they stay in the first-level cache.
constexpr std::int64_t kDrawsAtOnce = 1024;

absl::Status Dropout(CpuDevice&, const DropoutMask& mask, In x, Tensor& y) {
  const SampleDraws at = DrawsOf(mask);
  const std::int64_t samples = x.dim(0);
  const std::int64_t elems = samples == 0 ? 0 : x.numel() / samples;
  const float scale = static_cast<float>(mask.scale);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  std::array<std::uint32_t, kDrawsAtOnce> draws;
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t e = 0; e < elems; e += kDrawsAtOnce) {
      const std::int64_t count = std::min(kDrawsAtOnce, elems - e);
      FillBits32(at.key, at.At(n), static_cast<std::uint32_t>(e / 4),
                 absl::MakeSpan(draws).first(count));
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = draws[i] >= mask.drop_below ? from[i] * scale : 0.0f;
      }
      from += count;
      to += count;
    }
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, DropoutKernels& ops) {
  BindF32<Dropout>(cpu, ops.Dropout);
}

}  // namespace troupe::nn::cpu
