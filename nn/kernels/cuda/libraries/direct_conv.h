// Convolutions by plain sums, without tensor cores: those in groups of so few
// channels that products of matrices have nothing to work on, depthwise ones
// first of all.
//
//   if (ConvIsDirect(spec)) {
//     TROUPE_ASSIGN_OR_RETURN(void* scratch,
//                             memory.Bytes(DirectConvScratchBytes(spec)));
//     status = DirectConv(spec, operands, scratch, stream);
//   }
//
// Results are overwritten, without a bias. Sums are in f32 and rounded once; a
// weight's are cut into bands of rows of pixels, whose number follows from the
// shape. Operands lie anywhere that their dtype may.
//
// Asynchronous: returns when the kernels are queued on `stream`. Errors:
// kInternal where a launch failed.

#ifndef NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_
#define NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "nn/kernels/cuda/libraries/conv_spec.h"

namespace troupe::nn::cuda {

// Channels of a group from which on a library computes it.
constexpr std::int64_t kLibraryGroupMin = 4;

inline bool ConvIsDirect(const ConvSpec& spec) {
  return spec.groups > 1 && spec.group_channels() < kLibraryGroupMin;
}

// Operands lie in device memory, 16-byte aligned.
std::size_t DirectConvScratchBytes(const ConvSpec& spec);

absl::Status DirectConv(const ConvSpec& spec, const ConvOperands& operands,
                        void* scratch, cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_
