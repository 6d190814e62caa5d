// One step of SGD in one pass over device memory: PyTorch's torch.optim.SGD
// with momentum, dampening, Nesterov's rule and weight decay (SgdRule says the
// formula).
//
//   absl::Status s = CudaSgdUpdate(
//       rule, {count, scalars, grad, param, momentum}, stream);
//
// Letters: one flat range of `count` elements of the arenas, f32. The step's
// scalars are read when the kernel runs.
//
// Rounding is part of the contract: each product and sum of the formula is
// rounded to f32 on its own, with no fused multiply-add, and the scalars are
// rounded to f32 once, here. So the result equals a plain loop on the CPU
// compiled with -ffp-contract=off, bit for bit, wherever the range begins.
//
// Asynchronous: returns when the kernel is queued on `stream`. Cost: 3 reads
// and 2 writes of 4 bytes per element (2 and 1 without momentum).

#ifndef NN_KERNELS_CUDA_SGD_UPDATE_H_
#define NN_KERNELS_CUDA_SGD_UPDATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

// Device memory, [count_elems] each; the ranges do not overlap.
struct CudaSgdRange {
  std::int64_t count_elems = 0;
  const StepScalars* scalars = nullptr;  // device memory
  const float* grad = nullptr;
  float* param = nullptr;
  float* momentum = nullptr;  // not read where rule.momentum is 0
};

//   kInvalidArgument: a range or the scalars are missing.
//   kInternal:        the launch failed.
absl::Status CudaSgdUpdate(const SgdRule& rule, const CudaSgdRange& range,
                           cudaStream_t stream);

}  // namespace troupe::nn

#endif  // NN_KERNELS_CUDA_SGD_UPDATE_H_
