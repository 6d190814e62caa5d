// Makes the call of a case's op on given tensors.
//
//   const CaseTensors t = {x, w, y};
//   std::function<absl::Status()> run = CallOf(c, t, kernels);

#ifndef TOOLS_BENCH_GPU_KERNELS_KERNEL_CALL_H_
#define TOOLS_BENCH_GPU_KERNELS_KERNEL_CALL_H_

#include <functional>

#include "absl/status/status.h"
#include "nn/kernels/kernels.h"
#include "tools/bench/gpu_kernels/kernel_case.h"

namespace troupe::bench {

// Input, weights and output; the case's way determines which is written.
struct CaseTensors {
  nn::Tensor x, w, y;
};

inline nn::Shape ShapeOfX(const KernelCase& c) {
  return c.conv ? nn::Shape({c.N, c.H, c.H, c.C}) : nn::Shape({c.N, c.K});
}
inline nn::Shape ShapeOfW(const KernelCase& c) {
  if (!c.conv) return nn::Shape({c.M, c.K});
  return nn::Shape({c.O, c.C, c.window.kernel_h, c.window.kernel_w});
}
inline nn::Shape ShapeOfY(const KernelCase& c) {
  return c.conv ? nn::Shape({c.N, c.P(), c.P(), c.O}) : nn::Shape({c.N, c.M});
}

// `kernels` must outlive the returned function.
std::function<absl::Status()> CallOf(const KernelCase& c, const CaseTensors& t,
                                     nn::Kernels& kernels);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_KERNELS_KERNEL_CALL_H_
