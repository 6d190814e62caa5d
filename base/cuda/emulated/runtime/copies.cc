// Copies and fills. A copy from pageable memory is staged at once and one to it
// waits, as in the driver; in a capture, both keep the pointer.

#include <cstring>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/host_memory.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

struct Side {
  int device = -1;  // -1: the host
  bool is_pinned = false;
  bool is_whole = true;  // whether it lies within one allocation
};

Side SideOf(const void* p, std::size_t bytes) {
  Side side;
  side.device = DeviceOf(p);
  if (side.device >= 0) {
    side.is_whole = IsLiveOnDevice(p, bytes);
    return side;
  }
  const Pinned pinned = PinnedAt(p, bytes);
  side.is_pinned = pinned == Pinned::kAll;
  side.is_whole = pinned != Pinned::kBeyondItsEnd;
  return side;
}

cudaMemcpyKind KindOf(const Side& to, const Side& from) {
  if (to.device < 0) {
    return from.device < 0 ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  }
  return from.device < 0 ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  cudaMemcpyKind kind;
};

DeviceMask MaskOf(const Side& side) {
  return side.device < 0 ? 0 : DeviceBit(side.device);
}

cudaError_t EnqueueCopy(const Copy& copy, Stream& stream, const char* name,
                        const CallSite& site) {
  if (copy.bytes == 0) return cudaSuccess;
  const Side to = SideOf(copy.to, copy.bytes);
  const Side from = SideOf(copy.from, copy.bytes);
  if (!to.is_whole || !from.is_whole) {
    Problem(std::string(name) + " beyond an allocation, in " + site.ToString());
    return Fail(cudaErrorInvalidValue);
  }
  const cudaMemcpyKind kind = KindOf(to, from);
  if (copy.kind != cudaMemcpyDefault && copy.kind != kind) {
    return Fail(cudaErrorInvalidMemcpyDirection);
  }
  Work work;
  work.name = name;
  work.site = site;
  work.devices = MaskOf(to) | MaskOf(from);
  if (kind == cudaMemcpyHostToDevice && !from.is_pinned &&
      stream.capture == 0) {
    const Recorded recorded;
    const auto* const begin = static_cast<const char*>(copy.from);
    work.run = [to = copy.to,
                stage = std::vector<char>(begin, begin + copy.bytes)] {
      std::memcpy(to, stage.data(), stage.size());
    };
  } else {
    work.run = [copy] { std::memcpy(copy.to, copy.from, copy.bytes); };
  }
  if (const auto error = Enqueue(stream, std::move(work))) return error;
  if (to.device >= 0 || to.is_pinned || stream.capture != 0) return cudaSuccess;
  return WaitFor(stream.last,
                 "a copy to pageable memory, in " + site.ToString());
}

cudaError_t EnqueueFill(void* p, int value, std::size_t bytes, Stream& stream,
                        const char* name, const CallSite& site) {
  if (bytes == 0) return cudaSuccess;
  if (!IsLiveOnDevice(p, bytes)) {
    Problem(std::string(name) + " beyond an allocation, in " + site.ToString());
    return Fail(cudaErrorInvalidValue);
  }
  Work work;
  work.name = name;
  work.site = site;
  work.devices = DeviceBit(DeviceOf(p));
  work.run = [p, value, bytes] { std::memset(p, value, bytes); };
  return Enqueue(stream, std::move(work));
}

// Ends a call that waits for the null stream.
cudaError_t WaitForNullStream(Stream& stream, const CallSite& site) {
  if (const auto error = WaitFor(stream.last, "a copy in " + site.ToString())) {
    return error;
  }
  return Fail(
      TheWorld().devices[static_cast<std::size_t>(stream.device)].broken);
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::Fail;
using emulated_cuda::Lookup;
using emulated_cuda::Stream;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  return emulated_cuda::EnqueueCopy({to, from, bytes, kind}, *stream, __func__,
                                    call.site());
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(cudaStream_t{nullptr});
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureImplicit);
  }
  if (const auto error = emulated_cuda::EnqueueCopy(
          {to, from, bytes, kind}, *stream, __func__, call.site())) {
    return error;
  }
  return emulated_cuda::WaitForNullStream(*stream, call.site());
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                int from_device, std::size_t bytes,
                                cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (bytes != 0 && (emulated_cuda::DeviceOf(to) != to_device ||
                     emulated_cuda::DeviceOf(from) != from_device)) {
    return Fail(cudaErrorInvalidValue);
  }
  return emulated_cuda::EnqueueCopy({to, from, bytes, cudaMemcpyDeviceToDevice},
                                    *stream, __func__, call.site());
}

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes,
                            cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  return emulated_cuda::EnqueueFill(p, value, bytes, *stream, __func__,
                                    call.site());
}

// May return before the fill has run, as the real one.
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(cudaStream_t{nullptr});
  return emulated_cuda::EnqueueFill(p, value, bytes, *stream, __func__,
                                    call.site());
}

}  // extern "C"
