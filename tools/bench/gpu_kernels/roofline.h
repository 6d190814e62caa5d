// What a GPU can do at best, and so how long a kernel must take at least.
//
//   const GpuPeaks* peaks = FindGpuPeaks("NVIDIA H200");    // or null
//   Bound bound = BoundOf(*peaks, Arithmetic::kBF16, flops, bytes);
//   bound.seconds;                // the larger of arithmetic and memory
//
// Peaks are the vendor's, for dense matrices; what one card does under its
// power limit is less (a product of 8192 rows of bf16 random numbers reaches
// about 790 of an H200's 989 TFLOP/s).

#ifndef TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_
#define TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_

#include "absl/strings/string_view.h"

namespace troupe::bench {

// What multiplies: plain f32, f32 rounded to TF32, bf16.
enum class Arithmetic { kF32, kTf32, kBF16 };

struct GpuPeaks {
  const char* name;  // part of what the driver calls the GPU
  double f32_tflops;
  double tf32_tflops;
  double bf16_tflops;
  double gb_per_second;  // of device memory

  double tflops(Arithmetic arithmetic) const;
};

// Null for a GPU that the table does not have.
const GpuPeaks* FindGpuPeaks(absl::string_view gpu);

struct Bound {
  double seconds = 0;
  bool by_memory = false;  // else by arithmetic
};

// Of work that computes `flops` and moves `bytes` of device memory, each
// operand once.
Bound BoundOf(const GpuPeaks& peaks, Arithmetic arithmetic, double flops,
              double bytes);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_KERNELS_ROOFLINE_H_
