#include "base/cuda/emulated/runtime/capture.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/api_call.h"

namespace emulated_cuda {
namespace {

Capture* CaptureOf(int id) { return TheWorld().captures.Find(id); }

// Returns whether all nodes lead to the origin's end.
bool IsJoined(const Graph& graph, std::vector<int> end) {
  std::vector<bool> leads(graph.nodes.size());
  while (!end.empty()) {
    const auto node = static_cast<std::size_t>(end.back());
    end.pop_back();
    if (leads[node]) continue;
    leads[node] = true;
    end.insert(end.end(), graph.after[node].begin(), graph.after[node].end());
  }
  return std::count(leads.begin(), leads.end(), false) == 0;
}

// Ends the capture for all streams that take part, and returns it.
Capture Take(int id) {
  World& world = TheWorld();
  for (auto& stream : world.streams) {
    if (stream->capture != id) continue;
    stream->capture = 0;
    stream->frontier.clear();
  }
  return world.captures.Take(id);
}

}  // namespace

cudaError_t Record(Stream& stream, Work work) {
  Capture& capture = *CaptureOf(stream.capture);
  if (capture.is_invalid) return cudaErrorStreamCaptureInvalidated;
  capture.graph.nodes.push_back(std::move(work));
  capture.graph.after.push_back(stream.frontier);
  stream.frontier = {static_cast<int>(capture.graph.nodes.size()) - 1};
  return cudaSuccess;
}

void Invalidate(const Stream& stream) {
  Capture* const capture = CaptureOf(stream.capture);
  if (capture != nullptr) capture->is_invalid = true;
}

void Invalidate(const Event& event) {
  Capture* const capture = CaptureOf(event.capture);
  if (capture != nullptr) capture->is_invalid = true;
}

bool RefuseUnsafeCall() {
  const cudaStreamCaptureMode mine = ThisThread().capture_mode;
  if (mine == cudaStreamCaptureModeRelaxed) return false;
  bool refused = false;
  TheWorld().captures.ForEach([&](Capture& capture) {
    const bool is_mine = pthread_equal(capture.thread, pthread_self()) != 0;
    const bool forbids = is_mine
                             ? capture.mode != cudaStreamCaptureModeRelaxed
                             : capture.mode == cudaStreamCaptureModeGlobal &&
                                   mine == cudaStreamCaptureModeGlobal;
    if (!forbids) return;
    capture.is_invalid = true;
    refused = true;
  });
  return refused;
}

cudaError_t WaitInCapture(Stream& stream, const Event& event) {
  if (event.capture != 0 && CaptureOf(event.capture) != nullptr) {
    if (stream.capture != 0 && stream.capture != event.capture) {
      Invalidate(stream);
      Invalidate(event);
      return cudaErrorStreamCaptureMerge;
    }
    if (stream.capture == 0) stream.frontier.clear();  // a fork
    stream.capture = event.capture;
    for (const int node : event.frontier) {
      auto& frontier = stream.frontier;
      if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) {
        frontier.push_back(node);
      }
    }
    return cudaSuccess;
  }
  if (event.capture != 0) return cudaErrorCapturedEvent;
  Invalidate(stream);
  return cudaErrorStreamCaptureIsolation;
}

}  // namespace emulated_cuda

using emulated_cuda::Capture;
using emulated_cuda::CaptureOf;
using emulated_cuda::Fail;
using emulated_cuda::Graph;
using emulated_cuda::Lookup;
using emulated_cuda::Stream;
using emulated_cuda::TheWorld;
using emulated_cuda::ThisThread;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle,
                                   cudaStreamCaptureMode mode) {
  EMULATED_CUDA_CALL();
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != 0) return Fail(cudaErrorIllegalState);
  if (stream == emulated_cuda::CurrentDevice().null_stream) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  stream->capture = TheWorld().captures.Begin(stream, mode);
  stream->frontier.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  cudaStreamCaptureStatus* status) {
  EMULATED_CUDA_CALL();
  const Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  const Capture* const capture = CaptureOf(stream->capture);
  *status = capture == nullptr    ? cudaStreamCaptureStatusNone
            : capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  EMULATED_CUDA_CALL();
  std::swap(*mode, ThisThread().capture_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  EMULATED_CUDA_CALL();
  *graph = nullptr;
  Stream* const stream = Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  const Capture* const ending = CaptureOf(stream->capture);
  if (ending == nullptr) return Fail(cudaErrorIllegalState);
  if (ending->origin != stream) return Fail(cudaErrorStreamCaptureUnmatched);
  if (ending->mode != cudaStreamCaptureModeRelaxed &&
      pthread_equal(ending->thread, pthread_self()) == 0) {
    return Fail(cudaErrorStreamCaptureWrongThread);
  }
  const std::vector<int> end = stream->frontier;
  Capture capture = emulated_cuda::Take(stream->capture);
  if (capture.is_invalid) return Fail(cudaErrorStreamCaptureInvalidated);
  if (!emulated_cuda::IsJoined(capture.graph, end)) {
    return Fail(cudaErrorStreamCaptureUnjoined);
  }
  *graph = reinterpret_cast<cudaGraph_t>(TheWorld().objects.graphs.Add(
      std::make_unique<Graph>(std::move(capture.graph))));
  return cudaSuccess;
}

}  // extern "C"
