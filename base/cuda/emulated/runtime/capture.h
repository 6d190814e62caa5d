// Stream capture: operations are recorded into a graph instead of queued.
//
//     if (RefuseUnsafeCall()) return Fail(cudaErrorStreamCaptureUnsupported);
//
// A capture begins on one stream, its origin. Another stream joins it by
// waiting for an event recorded on a stream that takes part, and must be waited
// for in turn before the origin ends it.
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_CAPTURE_H_
#define BASE_CUDA_EMULATED_RUNTIME_CAPTURE_H_

#include <cuda_runtime_api.h>

#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {

// Adds a node to the graph of the stream's capture.
//   cudaErrorStreamCaptureInvalidated: an earlier error ended the capture.
cudaError_t Record(Stream& stream, Work work);

// Makes the capture of `stream` end with an error; does nothing if there is
// none.
void Invalidate(const Stream& stream);

// Does the same for the capture that `event` was recorded in.
void Invalidate(const Event& event);

// Returns whether a capture forbids this thread a "potentially unsafe" call,
// such as cudaMalloc() or a wait; the capture is then invalid.
bool RefuseUnsafeCall();

// Implements cudaStreamWaitEvent() if the event, or the stream, is in a
// capture.
cudaError_t WaitInCapture(Stream& stream, const Event& event);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_CAPTURE_H_
