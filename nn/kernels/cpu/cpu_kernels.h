// The kernel set "cpu": oneDNN primitives cached per shape, and vector loops of
// our own where a primitive is slow or the shape is tiny.
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
  int threads = 1;  // of oneDNN, per rank
  // False: our own loops only (the simulator's choice: fast to create).
  bool onednn = true;
  // False: products of bf16 in f32, as on a CPU that has no instructions for
  // them.
  bool bf16 = true;
  // Where the tensors' memory comes from; null: the host. Tests make it small.
  std::shared_ptr<MemorySource> memory = nullptr;
};

std::unique_ptr<Kernels> CreateCpuKernels(const CpuKernelOptions& options);

}  // namespace troupe::nn

#endif  // NN_KERNELS_CPU_CPU_KERNELS_H_
