// Implements the calls of the CUDA runtime that ops make in addition to
// launches, synchronously. For tests of kernels, which run kernels when they
// are launched (//base/cuda/emulated:immediate_launch) and have no streams.

#include <cuda_runtime_api.h>

#include <cstring>

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind, cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes,
                            cudaStream_t) {
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "an error of CUDA";
}

const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}

}  // extern "C"
