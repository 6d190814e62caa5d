// Binds the ops that libraries compute on a GPU: linear layers, convolutions,
// matrix products and attention, on top of matmul.h, conv.h and
// attention_plans.h. Also binds the ops of separate biases.
//
//   LibraryOps state;
//   state.stream = stream, state.allocator = &allocator;
//   state.matmuls = matmuls.get(), state.convs = convs.get();
//   BindLinear(kernels, &state);
//   BindConv2d(kernels, &state);
//
// The first call with a shape may wait for the GPU (matmul.h); later calls only
// enqueue. A call takes its scratch memory from the allocator and releases it
// before it returns: the allocator hands out a released block again in the
// order of `stream`, the compute stream. Unaligned operands are copied first.
//
// Dtypes: f32, bf16 and f16 operands; weight gradients may be f32 with 16-bit
// operands. Threads: the device's strand. Lifetime: the state must outlive the
// ops.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_
#define NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_

#include <type_traits>

#include "nn/kernels/attention.h"
#include "nn/kernels/bias.h"
#include "nn/kernels/conv2d.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/matmul.h"
#include "nn/kernels/families.h"
#include "nn/kernels/kernels.h"
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
  // Kernels of our own, for the attention that no library computes.
  const AttentionKernels* own_attention = nullptr;
  // Value of MatmulSpec::allow_tf32 and ConvSpec::allow_tf32 in all calls.
  bool allow_tf32 = false;
};

void BindLinear(LinearKernels& ops, LibraryOps* state);
void BindConv2d(Conv2dKernels& ops, LibraryOps* state);
void BindAttention(AttentionKernels& ops, LibraryOps* state);
void BindBias(BiasKernels& ops, LibraryOps* state);
void BindMatMul(MatMulKernels& ops, LibraryOps* state);

// The families of these functions.
using LibraryFamilies = Families<LinearKernels, Conv2dKernels, AttentionKernels,
                                 BiasKernels, MatMulKernels>;

// Binds every family of `kernels`: those of LibraryFamilies to `libraries`, the
// others to kernels of our own.
inline void BindFamilies(Kernels& kernels, CudaOps* own,
                         LibraryOps* libraries) {
  BindLinear(kernels, libraries);
  BindConv2d(kernels, libraries);
  BindAttention(kernels, libraries);
  BindBias(kernels, libraries);
  BindMatMul(kernels, libraries);
  kernels.ForEachFamily([own](auto& family) {
    using Family = std::remove_reference_t<decltype(family)>;
    if constexpr (!LibraryFamilies::kHas<Family>) BindFamily(family, own);
  });
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_
