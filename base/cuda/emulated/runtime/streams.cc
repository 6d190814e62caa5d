// The API's streams and host functions, and the functions that enqueue kernels.

#include <utility>

#include "base/cuda/emulated/enqueue.h"
#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

DeviceMask MemoryOf(int device) {
  return DeviceBit(device) |
         TheWorld().devices[static_cast<std::size_t>(device)].peers;
}

cudaError_t EnqueueUsers(const ApiCall& call, cudaStream_t handle,
                         const LaunchSite& site, std::function<void()> run) {
  if (call.refused() != cudaSuccess) return call.refused();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr || stream->device != ThisThread().device) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  Work work;
  work.name = site.name;
  work.file = site.file;
  work.line = site.line;
  work.site = call.site();
  work.devices = MemoryOf(stream->device);
  work.is_users = true;
  work.run = std::move(run);
  return Enqueue(*stream, std::move(work));
}

// Returns the error's name and clears it as the last error.
const char* NameIfError(cudaError_t error) {
  if (error == cudaSuccess) return nullptr;
  ThisThread().last_error = cudaSuccess;
  return cudaGetErrorName(error);
}

// Checks whether a wait or a query on `stream` is allowed now.
cudaError_t CheckAsking(const Stream& stream) {
  if (!RefuseUnsafeCall() && stream.capture == 0) return cudaSuccess;
  Invalidate(stream);
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t BrokenOf(const Stream& stream) {
  return TheWorld().devices[static_cast<std::size_t>(stream.device)].broken;
}

}  // namespace

const char* EnqueueKernel(cudaStream_t stream, const LaunchSite& site,
                          std::function<void()> run) {
  const ApiCall call("cudaLaunchKernel", __builtin_frame_address(0));
  const cudaError_t error = EnqueueUsers(call, stream, site, std::move(run));
  // A launch on a GPU is followed by cudaGetLastError(), which also returns an
  // earlier error that was not read.
  return NameIfError(error != cudaSuccess ? error : ThisThread().last_error);
}

const char* EnqueueHostWork(cudaStream_t stream, const LaunchSite& site,
                            std::function<void()> run) {
  const ApiCall call("EnqueueHostWork", __builtin_frame_address(0));
  return NameIfError(EnqueueUsers(call, stream, site, std::move(run)));
}

}  // namespace emulated_cuda

using emulated_cuda::BrokenOf;
using emulated_cuda::CheckAsking;
using emulated_cuda::Fail;
using emulated_cuda::Lookup;
using emulated_cuda::Stream;
using emulated_cuda::TheWorld;
using emulated_cuda::ThisThread;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags,
                                         int priority) {
  EMULATED_CUDA_CALL();
  if ((flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
    return Fail(cudaErrorInvalidValue);
  }
  Stream* const stream = emulated_cuda::NewStream(
      ThisThread().device, (flags & cudaStreamNonBlocking) == 0,
      /*is_branch=*/false);
  // As in the driver, a priority out of range becomes the nearest one.
  stream->priority = priority < emulated_cuda::kGreatestPriority
                         ? emulated_cuda::kGreatestPriority
                     : priority > emulated_cuda::kLeastPriority
                         ? emulated_cuda::kLeastPriority
                         : priority;
  *out = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, /*priority=*/0);
}

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return cudaStreamCreateWithPriority(out, cudaStreamDefault, /*priority=*/0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  EMULATED_CUDA_CALL();
  if (least != nullptr) *least = emulated_cuda::kLeastPriority;
  if (greatest != nullptr) *greatest = emulated_cuda::kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  EMULATED_CUDA_CALL();
  const Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  EMULATED_CUDA_CALL();
  const Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  *flags = stream->is_blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr ||
      stream == emulated_cuda::CurrentDevice().null_stream) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  emulated_cuda::Invalidate(*stream);
  stream->is_destroyed = true;  // queued work still runs
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = CheckAsking(*stream)) return Fail(error);
  if (const cudaError_t error = emulated_cuda::WaitFor(
          stream->last, NameOf(*stream) + ", in " + call.site().ToString())) {
    return error;
  }
  return Fail(BrokenOf(*stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = CheckAsking(*stream)) return Fail(error);
  emulated_cuda::RunBeforeAnswer();
  if (BrokenOf(*stream) != cudaSuccess) return Fail(BrokenOf(*stream));
  if (stream->last && !stream->last->done) return Fail(cudaErrorNotReady);
  emulated_cuda::Hear(stream->last);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  EMULATED_CUDA_CALL();
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  std::vector<emulated_cuda::OperationPtr> ends;
  for (const auto& stream : TheWorld().streams) {
    if (stream->device == ThisThread().device) ends.push_back(stream->last);
  }
  for (const auto& end : ends) {
    if (const cudaError_t error = emulated_cuda::WaitFor(
            end, "the device, in " + call.site().ToString())) {
      return error;
    }
  }
  return Fail(emulated_cuda::CurrentDevice().broken);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                               void* data) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return Fail(cudaErrorInvalidValue);
  emulated_cuda::Work work;
  work.name = "cudaLaunchHostFunc";
  work.site = call.site();
  work.is_users = true;
  work.run = [function, data] { function(data); };
  return Enqueue(*stream, std::move(work));
}

}  // extern "C"
