// Binds the ops that a GPU computes with kernels of our own: all but products
// and convolutions (library_ops.h).
//
//   CudaOps state;
//   state.stream = stream, state.allocator = &allocator;
//   state.error = error;                     // data_error.h
//   BindElementwise(kernels, &state);
//   BindLoss(kernels, &state);
//
// A call enqueues its kernels on `state.stream` and returns; whoever owns the
// state may set another stream between calls. What a call needs for itself
// comes from the allocator and goes back before it returns: blocks that are
// released come back in the order of the stream.
//
// Dtypes: f32, bf16 and f16, computed in f32 and rounded once, to nearest, at
// the store; Add, Scale, Fill and Copy also f64. Statistics of losses are sums
// in f64. The order of every sum follows from the shape alone, no result
// depends on the order in which threads run, and no kernel uses atomics: equal
// numbers give equal bits. Memory is read and written 16 bytes at a time where
// addresses and shapes allow it.
//
// Errors: kUnimplemented for another dtype; kInternal where a launch failed;
// kResourceExhausted. Wrong data goes to `error`. Threads: the device's strand.
// Lifetime: the state outlives the ops.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_

#include <cuda_runtime_api.h>

#include "nn/kernels/attention.h"
#include "nn/kernels/batch_norm.h"
#include "nn/kernels/binary.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/dropout.h"
#include "nn/kernels/elementwise.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/layout.h"
#include "nn/kernels/loss.h"
#include "nn/kernels/norm.h"
#include "nn/kernels/optimizer.h"
#include "nn/kernels/pad2d.h"
#include "nn/kernels/pool2d.h"
#include "nn/kernels/reduction.h"
#include "nn/kernels/rotary.h"
#include "nn/kernels/softmax.h"
#include "nn/kernels/strided.h"
#include "nn/kernels/unary.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

struct CudaOps {
  cudaStream_t stream = nullptr;
  Allocator* allocator = nullptr;
  DataError* error = nullptr;  // in memory that kernels write
};

void BindOwnAttention(AttentionKernels& ops, CudaOps* state);
void BindRotary(RotaryKernels& ops, CudaOps* state);
void BindElementwise(ElementwiseKernels& ops, CudaOps* state);
void BindDropout(DropoutKernels& ops, CudaOps* state);
void BindEmbedding(EmbeddingKernels& ops, CudaOps* state);
void BindLayout(LayoutKernels& ops, CudaOps* state);
void BindLoss(LossKernels& ops, CudaOps* state);
void BindNorm(NormKernels& ops, CudaOps* state);
void BindBatchNorm(BatchNormKernels& ops, CudaOps* state);
void BindOptimizer(OptimizerKernels& ops, CudaOps* state);
void BindPad2d(Pad2dKernels& ops, CudaOps* state);
void BindPool2d(Pool2dKernels& ops, CudaOps* state);
void BindUnary(UnaryKernels& ops, CudaOps* state);
void BindBinary(BinaryKernels& ops, CudaOps* state);
void BindSoftmax(SoftmaxKernels& ops, CudaOps* state);
void BindReduction(ReductionKernels& ops, CudaOps* state);
void BindStrided(StridedKernels& ops, CudaOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_
