// Binds the ops that libraries compute on a GPU, linear layers, convolutions,
// products of matrices and attention, on top of matmul.h, conv.h and
// attention_plans.h, and biases by themselves.
//
//   LibraryOps state;
//   state.stream = stream, state.allocator = &allocator;
//   state.matmuls = matmuls.get(), state.convs = convs.get();
//   BindLinear(kernels, &state);
//   BindConv2d(kernels, &state);
//
// The first call with a shape may wait for the GPU (matmul.h); all others only
// enqueue. What a call needs for itself comes from the allocator and goes back
// before it returns: blocks that are released come back in the order of
// `stream`, the compute stream. Operands that are not aligned are copied first.
//
// Dtypes: f32, bf16 and f16 operands; weight gradients also f32 beside 16-bit
// operands. Threads: the device's strand. Lifetime: the state outlives the ops.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_
#define NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_

#include "nn/kernels/attention.h"
#include "nn/kernels/bias.h"
#include "nn/kernels/conv2d.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/matmul.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/matmul.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

struct LibraryOps {
  cudaStream_t stream = nullptr;
  Allocator* allocator = nullptr;
  MatmulPlans* matmuls = nullptr;
  ConvPlans* convs = nullptr;
  AttentionPlans* attentions = nullptr;
  // What computes the attention for which no library is asked.
  const AttentionKernels* own_attention = nullptr;
  // MatmulSpec::allow_tf32 and ConvSpec::allow_tf32 of all.
  bool allow_tf32 = false;
};

void BindLinear(LinearKernels& ops, LibraryOps* state);
void BindConv2d(Conv2dKernels& ops, LibraryOps* state);
void BindAttention(AttentionKernels& ops, LibraryOps* state);
void BindBias(BiasKernels& ops, LibraryOps* state);
void BindMatMul(MatMulKernels& ops, LibraryOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_
