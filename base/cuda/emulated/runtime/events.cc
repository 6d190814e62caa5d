// Events: the position in a stream where each was recorded last. Their times
// are virtual: each operation takes 1 to 10 us.

#include <memory>
#include <utility>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

cudaError_t CheckAsking(const Event& event) {
  if (event.capture != 0) {
    Invalidate(event);
    return cudaErrorCapturedEvent;
  }
  return RefuseUnsafeCall() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t BrokenOf(const Event& event) {
  return TheWorld().devices[static_cast<std::size_t>(event.device)].broken;
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::BrokenOf;
using emulated_cuda::CheckAsking;
using emulated_cuda::Event;
using emulated_cuda::Fail;
using emulated_cuda::Lookup;
using emulated_cuda::Stream;
using emulated_cuda::TheWorld;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  EMULATED_CUDA_CALL();
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
  if ((flags & ~kKnown) != 0) return Fail(cudaErrorInvalidValue);
  auto event = std::make_unique<Event>();
  event->device = emulated_cuda::ThisThread().device;
  event->has_timing = (flags & cudaEventDisableTiming) == 0;
  *out = reinterpret_cast<cudaEvent_t>(
      TheWorld().objects.events.Add(std::move(event)));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  EMULATED_CUDA_CALL();
  Event* const event = Lookup(handle);
  if (event == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  TheWorld().objects.events.Remove(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
  EMULATED_CUDA_CALL();
  Event* const event = Lookup(handle);
  Stream* const stream = Lookup(on);
  if (event == nullptr || stream == nullptr ||
      event->device != stream->device) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != 0) {
    event->record = nullptr;
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return cudaSuccess;
  }
  emulated_cuda::Work work;
  work.name = "cudaEventRecord";
  work.site = call.site();
  const cudaError_t error = Enqueue(*stream, std::move(work));
  if (error != cudaSuccess) return error;
  event->capture = 0;
  event->record = stream->last;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags) {
  // External records in graphs are not emulated.
  if (flags != cudaEventRecordDefault) return cudaErrorNotSupported;
  return cudaEventRecord(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t waits, cudaEvent_t handle,
                                unsigned) {
  EMULATED_CUDA_CALL();
  Event* const event = Lookup(handle);
  Stream* const stream = Lookup(waits);
  if (event == nullptr || stream == nullptr) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (event->capture != 0 || stream->capture != 0) {
    return Fail(emulated_cuda::WaitInCapture(*stream, *event));
  }
  if (!event->record) return cudaSuccess;  // never recorded
  emulated_cuda::Work work;
  work.name = "cudaStreamWaitEvent";
  work.site = call.site();
  Push(*stream, std::move(work), {event->record});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  EMULATED_CUDA_CALL();
  Event* const event = Lookup(handle);
  if (event == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = CheckAsking(*event)) return Fail(error);
  emulated_cuda::RunBeforeAnswer();
  if (BrokenOf(*event) != cudaSuccess) return Fail(BrokenOf(*event));
  if (event->record && !event->record->done) return Fail(cudaErrorNotReady);
  emulated_cuda::Hear(event->record);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  EMULATED_CUDA_CALL();
  Event* const event = Lookup(handle);
  if (event == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = CheckAsking(*event)) return Fail(error);
  // Another thread may destroy the event during the wait.
  const emulated_cuda::Device& device =
      TheWorld().devices[static_cast<std::size_t>(event->device)];
  if (const cudaError_t error = emulated_cuda::WaitFor(
          event->record, "an event, in " + call.site().ToString())) {
    return error;
  }
  return Fail(device.broken);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                 cudaEvent_t end) {
  EMULATED_CUDA_CALL();
  const Event* const first = Lookup(start);
  const Event* const second = Lookup(end);
  if (first == nullptr || second == nullptr || !first->has_timing ||
      !second->has_timing || !first->record || !second->record) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (!first->record->done || !second->record->done) {
    return Fail(cudaErrorNotReady);
  }
  const double ns = static_cast<double>(second->record->done_at_ns) -
                    static_cast<double>(first->record->done_at_ns);
  *milliseconds = static_cast<float>(ns * 1e-6);
  return cudaSuccess;
}

}  // extern "C"
