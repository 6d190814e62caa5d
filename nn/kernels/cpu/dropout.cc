#include <algorithm>
#include <array>

#include "nn/kernels/cpu/widening.h"
#include "nn/random/philox.h"

namespace troupe::nn::cpu {
namespace {

// Number of draws at a time: they stay in the first-level cache.
constexpr std::int64_t kDrawsAtOnce = 1024;

constexpr std::int64_t kBlockDraws = 4;

// A run of elements of a sample, which has draws `first`, first + 1, ...
struct Run {
  RandomPosition at;
  std::int64_t first, count;
};

void DropRun(const DropoutMask& mask, const Run& run, const float* from,
             float* to) {
  const float scale = static_cast<float>(mask.scale);
  std::array<std::uint32_t, kDrawsAtOnce> draws;
  for (std::int64_t e = 0; e < run.count;) {
    const std::int64_t draw = run.first + e;
    const std::int64_t begun = draw % kBlockDraws;
    const std::int64_t count = std::min(kDrawsAtOnce - begun, run.count - e);
    FillBits32(mask.draws.key, run.at,
               static_cast<std::uint32_t>(draw / kBlockDraws),
               absl::MakeSpan(draws).first(begun + count));
    const std::uint32_t* const own = draws.data() + begun;
    for (std::int64_t i = 0; i < count; ++i) {
      to[e + i] = own[i] >= mask.drop_below ? from[e + i] * scale : 0.0f;
    }
    e += count;
  }
}

absl::Status Dropout(CpuDevice&, const DropoutMask& mask, In x, Tensor& y) {
  const SampleDraws at = DrawsOf(mask);
  const std::int64_t samples = x.dim(0);
  const std::int64_t elems = samples == 0 ? 0 : x.numel() / samples;
  const std::int64_t row = mask.row == 0 ? elems : mask.row;
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t e = 0; e < elems; e += row) {
      const std::int64_t i = n * elems + e;
      DropRun(mask, {at.At(n), mask.DrawOf(e), row}, x.data<float>() + i,
              y.data<float>() + i);
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
