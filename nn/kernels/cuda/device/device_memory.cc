#include "nn/kernels/cuda/device/device_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>

namespace troupe::nn::cuda {

void* DeviceMemory::Allocate(std::size_t bytes) {
  void* block = nullptr;
  if (cudaSetDevice(streams_->ordinal()) != cudaSuccess) return nullptr;
  if (cudaMalloc(&block, std::max<std::size_t>(bytes, 1)) == cudaSuccess) {
    return block;
  }
  cudaGetLastError();  // clears the error for the check of the next launch
  return nullptr;
}

void DeviceMemory::Free(void* block, std::size_t) {
  cudaSetDevice(streams_->ordinal());
  streams_->Finish();
  cudaFree(block);
}

std::optional<std::size_t> DeviceMemory::bytes_free() const {
  std::size_t left = 0, all = 0;
  if (cudaSetDevice(streams_->ordinal()) != cudaSuccess ||
      cudaMemGetInfo(&left, &all) != cudaSuccess) {
    return std::nullopt;
  }
  return left;
}

void* PinnedMemory::Allocate(std::size_t bytes) {
  void* block = nullptr;
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  if (cudaSetDevice(ordinal_) != cudaSuccess) return nullptr;
  if (cudaMallocHost(&block, asked) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  absl::MutexLock lock(&mutex_);
  blocks_[reinterpret_cast<std::uintptr_t>(block)] = asked;
  return block;
}

void PinnedMemory::Free(void* block, std::size_t) {
  {
    absl::MutexLock lock(&mutex_);
    blocks_.erase(reinterpret_cast<std::uintptr_t>(block));
  }
  cudaFreeHost(block);
}

bool PinnedMemory::Contains(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  absl::MutexLock lock(&mutex_);
  auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return false;
  --after;
  return at < after->first + after->second;
}

}  // namespace troupe::nn::cuda
