#include "base/cuda/emulated/runtime/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

constexpr std::size_t kAlignBytes = 256;

}  // namespace

void HostRanges::Add(const void* begin, std::size_t bytes) {
  ranges_[static_cast<const char*>(begin)] = bytes;
}

std::optional<std::size_t> HostRanges::Remove(const void* begin) {
  const auto range = ranges_.find(static_cast<const char*>(begin));
  if (range == ranges_.end()) return std::nullopt;
  const std::size_t bytes = range->second;
  ranges_.erase(range);
  return bytes;
}

Pinned HostRanges::At(const char* p, std::size_t bytes) const {
  auto range = ranges_.upper_bound(p);
  if (range == ranges_.begin()) return Pinned::kNot;
  --range;
  const char* const end = range->first + range->second;
  if (p >= end) return Pinned::kNot;
  return p + bytes <= end ? Pinned::kAll : Pinned::kBeyondItsEnd;
}

void HostRanges::Free() {
  for (auto& [memory, bytes] : ranges_) std::free(const_cast<char*>(memory));
  ranges_.clear();
}

Pinned PinnedAt(const void* p, std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(p);
  const PinnedHostMemory& pinned = TheWorld().pinned;
  const Pinned ours = pinned.allocated.At(begin, bytes);
  return ours != Pinned::kNot ? ours : pinned.registered.At(begin, bytes);
}

}  // namespace emulated_cuda

using emulated_cuda::Fail;
using emulated_cuda::Pinned;
using emulated_cuda::PinnedAt;
using emulated_cuda::TheWorld;
using emulated_cuda::World;

extern "C" {

cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  EMULATED_CUDA_CALL();
  World& world = TheWorld();
  *out = nullptr;
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++world.activity.counts.system_allocations;
  if (bytes == 0) return cudaSuccess;
  const std::size_t align = emulated_cuda::kAlignBytes;
  const emulated_cuda::Recorded recorded;
  // Not rounded up, so that AddressSanitizer detects accesses beyond the end.
  if (posix_memalign(out, align, bytes) != 0) {
    return Fail(cudaErrorMemoryAllocation);
  }
  std::memset(*out, world.options.poison, bytes);
  world.pinned.allocated.Add(*out, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  return cudaMallocHost(out, bytes);
}

cudaError_t cudaFreeHost(void* p) {
  EMULATED_CUDA_CALL();
  World& world = TheWorld();
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++world.activity.counts.system_allocations;
  if (p == nullptr) return cudaSuccess;
  const emulated_cuda::Recorded recorded;
  const auto bytes = world.pinned.allocated.Remove(p);
  if (!bytes.has_value()) return Fail(cudaErrorInvalidValue);
  std::memset(p, world.options.poison, *bytes);
  std::free(p);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned) {
  EMULATED_CUDA_CALL();
  if (p == nullptr || bytes == 0) return Fail(cudaErrorInvalidValue);
  if (PinnedAt(p, bytes) != Pinned::kNot) {
    return Fail(cudaErrorHostMemoryAlreadyRegistered);
  }
  TheWorld().pinned.registered.Add(p, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* p) {
  EMULATED_CUDA_CALL();
  const bool known = TheWorld().pinned.registered.Remove(p).has_value();
  return Fail(known ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

// Devices read pinned memory at the host's address.
cudaError_t cudaHostGetDevicePointer(void** out, void* p, unsigned) {
  EMULATED_CUDA_CALL();
  if (PinnedAt(p, 1) != Pinned::kAll) return Fail(cudaErrorInvalidValue);
  *out = p;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* p) {
  EMULATED_CUDA_CALL();
  std::memset(attributes, 0, sizeof *attributes);
  attributes->device = emulated_cuda::DeviceOf(p);
  if (attributes->device >= 0) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(p);
  } else if (PinnedAt(p, 1) == Pinned::kAll) {
    attributes->type = cudaMemoryTypeHost;
    attributes->device = emulated_cuda::ThisThread().device;
    attributes->hostPointer = const_cast<void*>(p);
    attributes->devicePointer = const_cast<void*>(p);
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
  }
  return cudaSuccess;
}

}  // extern "C"
