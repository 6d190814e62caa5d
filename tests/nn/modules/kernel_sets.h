// Kernel sets with which tests of tensor parallel layers compare one rank and
// several, and how near the results are.

#ifndef TESTS_NN_MODULES_KERNEL_SETS_H_
#define TESTS_NN_MODULES_KERNEL_SETS_H_

#include <functional>
#include <memory>

#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::nn {

struct KernelSet {
  std::function<std::unique_ptr<Kernels>()> create;
  DType dtype;
  double tolerance;
};

inline const KernelSet kReferenceF64 = {[] { return CreateReferenceKernels(); },
                                        DType::kF64, 1e-11};
inline const KernelSet kReferenceF32 = {[] { return CreateReferenceKernels(); },
                                        DType::kF32, 2e-6};
inline const KernelSet kCpuF32 = {[] { return CreateCpuKernels({}); },
                                  DType::kF32, 2e-6};
inline const KernelSet kAllSets[] = {kReferenceF64, kReferenceF32, kCpuF32};

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_KERNEL_SETS_H_
