// Excludes algorithms of a library that lose bits of an f32 convolution, above
// all Winograd transforms, which a library's numerical notes may not mention.
//
//   std::vector<CandidateTimes> times = {{8.1f}, {7.1f}};   // measure.h
//   status = DropInexact(candidates, operands, allocator, stream, times);
//   const int best = FastestCandidate(times);
//
// Each candidate that has times runs once more, and its result is compared with
// plain sums (direct_conv.h). If it differs by more than f32 sums in another
// order would, its times are cleared, so it is not chosen.
//
// Waits for the GPU, so it must not be called during a capture. Threads: the
// device's strand.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CONV_EXACTNESS_H_
#define NN_KERNELS_CUDA_LIBRARIES_CONV_EXACTNESS_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "nn/kernels/cuda/libraries/candidates.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/conv_spec.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

// Returns the limit on the norm of the error divided by the norm of the result.
// In f32 a sum of k terms is off by about sqrt(k) / 2 roundings, in TF32 by
// some thousands.
double InexactFrom(const ConvSpec& spec);

// Clears the times of inexact candidates. All `candidates` have one f32 spec,
// and either all or none of them add its bias; `operands` are those of the
// timing. If all are inexact, the least inexact one keeps its times.
//   kResourceExhausted: no memory to compare in.
//   kInternal:          the device failed.
absl::Status DropInexact(
    const std::vector<std::unique_ptr<ConvPlan>>& candidates,
    const ConvOperands& operands, Allocator& allocator, cudaStream_t stream,
    std::vector<CandidateTimes>& times);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_EXACTNESS_H_
