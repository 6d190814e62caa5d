#include <cuda_runtime_api.h>

#include <cstdlib>

#include "base/cuda/cuda_status.h"
#include "tests/base/cuda/emulated/test_device.h"

namespace emulated_cuda_test {

using troupe::base::CudaStatus;

std::string WhyNoDevice() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count == 0 ? "no GPU" : "";
}

void* AllocateShared(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMallocManaged(&memory, bytes + 1) != cudaSuccess) std::abort();
  return memory;
}

void FreeShared(void* memory) { cudaFree(memory); }

absl::Status WaitFor(absl::Status launched) {
  if (!launched.ok()) return launched;
  return CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

unsigned char PoisonByte() { return 0xFF; }

int RunCount() { return 3; }

void BeginRun(int) {}

}  // namespace emulated_cuda_test
