// The roofline of a GPU: its peak rates, and the lower bound on a kernel's time
// that follows from them.
//
//   const GpuPeaks* peaks = FindGpuPeaks("NVIDIA H200");    // or null
//   Bound bound = BoundOf(*peaks, Arithmetic::kBF16, flops, bytes);
//   bound.seconds;                // the larger of arithmetic and memory
//
// Peaks are the vendor's, for dense matrices. A card under its power limit
// reaches less: a product of 8192 rows of bf16 random numbers, about 790 of an
// H200's 989 TFLOP/s.

#ifndef TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_
#define TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_

#include "absl/strings/string_view.h"

namespace troupe::bench {

// Type of the multiplications: plain f32, f32 rounded to TF32, bf16.
enum class Arithmetic { kF32, kTf32, kBF16 };

struct GpuPeaks {
  const char* name;  // part of the driver's name of the GPU
  double f32_tflops;
  double tf32_tflops;
  double bf16_tflops;
  double gb_per_second;  // bandwidth of device memory

  double tflops(Arithmetic arithmetic) const;
};

// Returns null for a GPU that the table lacks.
const GpuPeaks* FindGpuPeaks(absl::string_view gpu);

struct Bound {
  double seconds = 0;
  bool by_memory = false;  // whether memory limits the time, not arithmetic
};

// Returns the bound of a kernel that computes `flops` and moves `bytes` of
// device memory, each operand once.
Bound BoundOf(const GpuPeaks& peaks, Arithmetic arithmetic, double flops,
              double bytes);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_
