// Devices: their number, their properties, and access to each other's memory.
// They report the properties of a small Hopper.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

// Small, so that kernels whose grid depends on it loop.
constexpr int kMultiprocessors = 4;
constexpr int kSharedBytes = 48 << 10;
constexpr int kSharedBytesOptIn = 227 << 10;
constexpr int kThreadsMax = 1024;
constexpr int kL2Bytes = 50 << 20;
constexpr int kBusBase = 16;  // bus of device 0
constexpr int kMajor = 9;

bool Exists(int device) {
  return device >= 0 && device < static_cast<int>(TheWorld().devices.size());
}

Device& At(int device) {
  return TheWorld().devices[static_cast<std::size_t>(device)];
}

// Returns -1 if the attribute is not emulated.
int AttributeOf(cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return kThreadsMax;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return kSharedBytesOptIn;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2 * kThreadsMax;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrL2CacheSize:
      return kL2Bytes;
    case cudaDevAttrComputeCapabilityMajor:
      return kMajor;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrHostRegisterSupported:
      return 1;
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrPciBusId:
      return kBusBase + At(device).in_machine;
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrIntegrated:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrComputeMode:
      return 0;
    default:
      return -1;
  }
}

cudaDeviceProp PropertiesOf(int device) {
  cudaDeviceProp made;
  std::memset(&made, 0, sizeof made);
  std::snprintf(made.name, sizeof made.name, "Emulated GPU");
  std::memcpy(made.uuid.bytes, "emulated", 8);
  made.uuid.bytes[8] = static_cast<char>(At(device).in_machine);
  made.totalGlobalMem = At(device).memory.bytes_max();
  made.sharedMemPerBlock = kSharedBytes;
  made.sharedMemPerBlockOptin = kSharedBytesOptIn;
  made.sharedMemPerMultiprocessor = kSharedBytesOptIn;
  made.regsPerBlock = made.regsPerMultiprocessor = 64 << 10;
  made.warpSize = 32;
  made.maxThreadsPerBlock = kThreadsMax;
  made.maxThreadsPerMultiProcessor = 2 * kThreadsMax;
  made.maxBlocksPerMultiProcessor = 32;
  made.maxThreadsDim[0] = made.maxThreadsDim[1] = kThreadsMax;
  made.maxThreadsDim[2] = 64;
  made.maxGridSize[0] = 0x7fffffff;
  made.maxGridSize[1] = made.maxGridSize[2] = 65535;
  made.major = kMajor;
  made.multiProcessorCount = kMultiprocessors;
  made.canMapHostMemory = made.unifiedAddressing = 1;
  made.concurrentKernels = made.streamPrioritiesSupported = 1;
  made.memoryPoolsSupported = made.hostRegisterSupported = 1;
  made.asyncEngineCount = 3;
  made.l2CacheSize = kL2Bytes;
  made.pciBusID = kBusBase + At(device).in_machine;
  return made;
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::At;
using emulated_cuda::DeviceBit;
using emulated_cuda::Exists;
using emulated_cuda::Fail;
using emulated_cuda::TheWorld;
using emulated_cuda::ThisThread;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  EMULATED_CUDA_CALL_ANYWAY();
  *count = static_cast<int>(TheWorld().devices.size());
  return Fail(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  EMULATED_CUDA_CALL_ANYWAY();
  if (!Exists(device)) return Fail(cudaErrorInvalidDevice);
  ThisThread().device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  EMULATED_CUDA_CALL_ANYWAY();
  *device = ThisThread().device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  EMULATED_CUDA_CALL();
  if (!Exists(device)) return Fail(cudaErrorInvalidDevice);
  *properties = emulated_cuda::PropertiesOf(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                   int device) {
  EMULATED_CUDA_CALL();
  if (!Exists(device)) return Fail(cudaErrorInvalidDevice);
  *value = emulated_cuda::AttributeOf(attribute, device);
  return Fail(*value < 0 ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  EMULATED_CUDA_CALL();
  if (!Exists(device)) return Fail(cudaErrorInvalidDevice);
  const int length = std::snprintf(
      text, static_cast<std::size_t>(std::max(bytes, 0)), "0000:%02x:00.0",
      emulated_cuda::kBusBase + At(device).in_machine);
  return Fail(length < bytes ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  EMULATED_CUDA_CALL();
  *free = emulated_cuda::CurrentDevice().memory.bytes_free();
  *total = emulated_cuda::CurrentDevice().memory.bytes_max();
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  EMULATED_CUDA_CALL();
  if (!Exists(device) || !Exists(peer)) return Fail(cudaErrorInvalidDevice);
  *can = device != peer && TheWorld().options.peer_access ? 1 : 0;
  return cudaSuccess;
}

// Reports a direct path, atomics included, if peer access is enabled.
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute,
                                      int from, int to) {
  EMULATED_CUDA_CALL();
  if (!Exists(from) || !Exists(to)) return Fail(cudaErrorInvalidDevice);
  if (from == to) return Fail(cudaErrorInvalidValue);
  *value = attribute != cudaDevP2PAttrPerformanceRank &&
                   TheWorld().options.peer_access
               ? 1
               : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  EMULATED_CUDA_CALL();
  const int device = ThisThread().device;
  if (!Exists(peer)) return Fail(cudaErrorInvalidDevice);
  if (flags != 0) return Fail(cudaErrorInvalidValue);
  if (peer == device || !TheWorld().options.peer_access) {
    return Fail(cudaErrorPeerAccessUnsupported);
  }
  emulated_cuda::DeviceMask& peers = At(device).peers;
  if ((peers & DeviceBit(peer)) != 0) {
    return Fail(cudaErrorPeerAccessAlreadyEnabled);
  }
  peers |= DeviceBit(peer);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  EMULATED_CUDA_CALL();
  if (!Exists(peer)) return Fail(cudaErrorInvalidDevice);
  emulated_cuda::DeviceMask& peers = emulated_cuda::CurrentDevice().peers;
  if ((peers & DeviceBit(peer)) == 0) {
    return Fail(cudaErrorPeerAccessNotEnabled);
  }
  peers &= ~DeviceBit(peer);
  return cudaSuccess;
}

// Kernels have no attributes here; launches check their shared memory.
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute,
                                 int value) {
  EMULATED_CUDA_CALL();
  const bool fits = attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
                    value <= emulated_cuda::kSharedBytesOptIn;
  return Fail(fits ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
