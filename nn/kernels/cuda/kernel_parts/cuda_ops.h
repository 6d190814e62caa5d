// Binds the ops that a GPU computes with kernels of our own: all but products
// and convolutions (library_ops.h).
//
//   CudaOps state;
//   state.stream = stream, state.allocator = &allocator;
//   state.error = error;                     // data_error.h
//   BindFamily<ElementwiseKernels>(kernels, &state);
//   BindFamily<LossKernels>(kernels, &state);
//
// A call enqueues its kernels on `state.stream` and returns; the owner of the
// state may set another stream between calls. A call takes its scratch memory
// from the allocator and releases it before it returns: the allocator hands out
// a released block again in the order of the stream.
//
// Dtypes: f32, bf16 and f16, computed in f32 and rounded once, to nearest, at
// the store; Add, Scale, Fill and Copy also f64. Statistics of losses are sums
// in f64. The order of every sum follows from the shape alone, no result
// depends on the order in which threads run, and no kernel uses atomics: equal
// numbers give equal bits. Memory is accessed 16 bytes at a time if addresses
// and shapes allow it.
//
// Errors: kUnimplemented for another dtype; kInternal if a launch failed;
// kResourceExhausted if memory ran out. Kernels report wrong data in `error`.
// Threads: the device's strand.
// Lifetime: the state must outlive the ops.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_

#include <cuda_runtime_api.h>

#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

struct CudaOps {
  cudaStream_t stream = nullptr;
  Allocator* allocator = nullptr;
  DataError* error = nullptr;  // lies in memory that kernels can write
};

// Binds the kernels of a family to its ops. The family's file specializes it.
template <typename Family>
void BindFamily(Family& ops, CudaOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_
