// Convolutions by plain sums, without tensor cores. They compute grouped
// convolutions whose groups are too small for matrix products, above all
// depthwise ones.
//
//   if (ConvIsDirect(spec)) {
//     TROUPE_ASSIGN_OR_RETURN(void* scratch,
//                             memory.Bytes(DirectConvScratchBytes(spec)));
//     status = DirectConv(spec, operands, scratch, stream);
//   }
//
// Results are overwritten, without a bias. Sums are in f32 and rounded once.
// The sum of a weight gradient is split into bands of pixel rows, whose number
// follows from the shape. Operands need only the alignment of their dtype.
//
// Asynchronous: returns when the kernels are queued on `stream`. Errors:
// kInternal if a launch failed.

#ifndef NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_
#define NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "nn/kernels/cuda/libraries/conv_spec.h"

namespace troupe::nn::cuda {

// Smallest number of channels of a group that a library computes.
constexpr std::int64_t kLibraryGroupMin = 4;

inline bool ConvIsDirect(const ConvSpec& spec) {
  return spec.groups > 1 && spec.group_channels() < kLibraryGroupMin;
}

// Returns the bytes of device memory that DirectConv() needs as `scratch`,
// 16-byte aligned.
std::size_t DirectConvScratchBytes(const ConvSpec& spec);

absl::Status DirectConv(const ConvSpec& spec, const ConvOperands& operands,
                        void* scratch, cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_
