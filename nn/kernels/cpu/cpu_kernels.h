// The kernel set "cpu": oneDNN primitives cached per shape, and vector loops of
// this library where a primitive is slow or the shape is tiny.
//
//   std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
//
// The instruction set (AVX-512, with products of bf16 or without, AVX2, plain)
// is chosen once, at creation, from what the CPU has; CpuKernelOptions::isa
// lowers it, for tests and comparisons. A kernel is chosen from shape and
// instruction set alone, never by timing, so equal plans give equal bits.

#ifndef NN_KERNELS_CPU_CPU_KERNELS_H_
#define NN_KERNELS_CPU_CPU_KERNELS_H_

#include <memory>

#include "base/cpu_isa.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

struct CpuKernelOptions {
  base::CpuIsa isa = base::BestCpuIsa();
  int threads = 1;  // oneDNN's, per rank
  // False: only the loops here (the simulator's choice: fast to create).
  bool onednn = true;
  // False: compute products of bf16 in f32, as on a CPU without instructions
  // for them.
  bool bf16 = true;
  // Source of the tensors' memory; null: the host. Tests make it small.
  std::shared_ptr<MemorySource> memory = nullptr;
};

std::unique_ptr<Kernels> CreateCpuKernels(const CpuKernelOptions& options);

}  // namespace troupe::nn

#endif  // NN_KERNELS_CPU_CPU_KERNELS_H_
