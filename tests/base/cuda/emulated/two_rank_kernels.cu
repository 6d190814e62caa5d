#include "tests/base/cuda/emulated/two_rank_kernels.h"

#include "base/cuda/launch.h"

namespace emulated_cuda_test {
namespace {

constexpr unsigned kBlock = 32;
constexpr unsigned kLossBlock = 64;

__device__ int Index() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void ForwardKernel(const float* w, const float* in, float* out,
                              int n) {
  const int i = Index();
  if (i < n) out[i] = w[i] * in[i] + 0.5f * in[(i + 1) % n];
}

__global__ void LossKernel(const float* out, const float* target, float* d_out,
                           float* loss, int n) {
  __shared__ float part[kLossBlock];
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = t; i < n; i += static_cast<int>(kLossBlock)) {
    const float d = out[i] - target[i];
    d_out[i] = d;
    sum = sum + d * d;
  }
  part[t] = sum;
  __syncthreads();
  if (t != 0) return;
  for (unsigned i = 1; i < kLossBlock; ++i) sum = sum + part[i];
  *loss = sum;
}

__global__ void BackwardKernel(const float* w, const float* in,
                               const float* d_out, float* d_w, float* d_in,
                               int n) {
  const int i = Index();
  if (i >= n) return;
  d_w[i] = d_w[i] + d_out[i] * in[i];
  d_in[i] = w[i] * d_out[i] + 0.5f * d_out[(i + n - 1) % n];
}

__global__ void UpdateKernel(float* w, const float* d_w, const float* rate,
                             int n) {
  const int i = Index();
  if (i < n) w[i] = w[i] - *rate * d_w[i];
}

__global__ void UpdateByValueKernel(float* w, const float* d_w, float rate,
                                    int n) {
  const int i = Index();
  if (i < n) w[i] = w[i] - rate * d_w[i];
}

troupe::base::LaunchShape ShapeOf(int n) {
  troupe::base::LaunchShape shape;
  shape.grid = dim3((static_cast<unsigned>(n) + kBlock - 1) / kBlock);
  shape.block = dim3(kBlock);
  return shape;
}

}  // namespace

using troupe::base::Launch;

absl::Status Forward(const float* w, const float* in, float* out, int n,
                     cudaStream_t stream) {
  return Launch("Forward", ForwardKernel, ShapeOf(n), stream, w, in, out, n);
}

absl::Status Loss(const float* out, const float* target, float* d_out,
                  float* loss, int n, cudaStream_t stream) {
  troupe::base::LaunchShape shape;
  shape.block = dim3(kLossBlock);
  return Launch("Loss", LossKernel, shape, stream, out, target, d_out, loss, n);
}

absl::Status Backward(const float* w, const float* in, const float* d_out,
                      float* d_w, float* d_in, int n, cudaStream_t stream) {
  return Launch("Backward", BackwardKernel, ShapeOf(n), stream, w, in, d_out,
                d_w, d_in, n);
}

absl::Status Update(float* w, const float* d_w, const float* rate, int n,
                    cudaStream_t stream) {
  return Launch("Update", UpdateKernel, ShapeOf(n), stream, w, d_w, rate, n);
}

absl::Status UpdateByValue(float* w, const float* d_w, float rate, int n,
                           cudaStream_t stream) {
  return Launch("UpdateByValue", UpdateByValueKernel, ShapeOf(n), stream, w,
                d_w, rate, n);
}

}  // namespace emulated_cuda_test
