// Kernels of a small model for two_rank_step.h: layer b multiplies by weights
// and adds half of the neighbour, out[i] = w[i] in[i] + in[i + 1] / 2.
//
//   absl::Status status = Forward(w, in, out, n, stream);
//
// All arrays are on the device and have n elements; `loss` and `rate` have one.

#ifndef TESTS_BASE_CUDA_EMULATED_TWO_RANK_KERNELS_H_
#define TESTS_BASE_CUDA_EMULATED_TWO_RANK_KERNELS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace emulated_cuda_test {

absl::Status Forward(const float* w, const float* in, float* out, int n,
                     cudaStream_t stream);
// Computes d_out = out - target; *loss is the sum of its squares.
absl::Status Loss(const float* out, const float* target, float* d_out,
                  float* loss, int n, cudaStream_t stream);
// Adds to d_w.
absl::Status Backward(const float* w, const float* in, const float* d_out,
                      float* d_w, float* d_in, int n, cudaStream_t stream);
// Computes w -= rate d_w. The first reads the rate when it runs, the second
// gets it at the launch.
absl::Status Update(float* w, const float* d_w, const float* rate, int n,
                    cudaStream_t stream);
absl::Status UpdateByValue(float* w, const float* d_w, float rate, int n,
                           cudaStream_t stream);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_TWO_RANK_KERNELS_H_
