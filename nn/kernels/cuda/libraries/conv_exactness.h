// Which algorithms of a library lose bits of an f32 convolution: above all
// Winograd's transforms, of which a library's notes may say nothing.
//
//   std::vector<CandidateTimes> times = {{8.1f}, {7.1f}};   // measure.h
//   status = DropInexact(candidates, operands, allocator, stream, times);
//   const int best = FastestCandidate(times);
//
// Each candidate that has times computes the operands once more, and is
// compared with plain sums (direct_conv.h). What is farther from them than f32
// sums in another order are loses its times, and so is not chosen.
//
// Waits for the GPU; never while a stream captures. Threads: the device's
// strand.

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

// The norm of the error over that of the result, at most: in f32 a sum of k
// terms is off by about sqrt(k) / 2 roundings, in TF32 by some thousands.
double InexactFrom(const ConvSpec& spec);

// `candidates` are of one f32 spec, all adding its bias or none of them, and
// `operands` are what they were timed on. Where all are inexact, the least
// inexact keeps its times.
//   kResourceExhausted: no memory to compare in.
//   kInternal:          the device failed.
absl::Status DropInexact(
    const std::vector<std::unique_ptr<ConvPlan>>& candidates,
    const ConvOperands& operands, Allocator& allocator, cudaStream_t stream,
    std::vector<CandidateTimes>& times);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_EXACTNESS_H_
