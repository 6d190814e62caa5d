#include "tools/bench/gpu_kernels/roofline.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace troupe::bench {
namespace {

// The first entry whose name is part of the GPU's is used. Sources: NVIDIA's
// data sheets "H200 Tensor Core GPU", "H100 Tensor Core GPU" (SXM5 and PCIe)
// and "A100 Tensor Core GPU". Their rates of tensor cores are with sparsity,
// twice those here.
constexpr GpuPeaks kPeaks[] = {
    {"H200", 66.9, 494.7, 989.4, 4800},
    {"H100 PCIe", 51.2, 378, 756, 2000},
    {"H100 NVL", 60.0, 417.5, 835, 3900},
    {"H100", 66.9, 494.7, 989.4, 3350},
    {"A100-SXM4-40GB", 19.5, 156, 312, 1555},
    {"A100-PCIE-40GB", 19.5, 156, 312, 1555},
    {"A100 80GB PCIe", 19.5, 156, 312, 1935},
    {"A100", 19.5, 156, 312, 2039},
};

}  // namespace

double GpuPeaks::tflops(Arithmetic arithmetic) const {
  switch (arithmetic) {
    case Arithmetic::kF32:
      return f32_tflops;
    case Arithmetic::kTf32:
      return tf32_tflops;
    case Arithmetic::kBF16:
      break;
  }
  return bf16_tflops;
}

const GpuPeaks* FindGpuPeaks(absl::string_view gpu) {
  for (const GpuPeaks& peaks : kPeaks) {
    if (absl::StrContains(gpu, peaks.name)) return &peaks;
  }
  return nullptr;
}

Bound BoundOf(const GpuPeaks& peaks, Arithmetic arithmetic, double flops,
              double bytes) {
  const double compute = flops / (peaks.tflops(arithmetic) * 1e12);
  const double memory = bytes / (peaks.gb_per_second * 1e9);
  return {std::max(compute, memory), memory > compute};
}

}  // namespace troupe::bench
