// The captures of streams that have begun and not ended (capture.h).
//
//     const int id = captures.Begin(stream, mode);
//     Capture* const capture = captures.Find(id);
//     Capture ended = captures.Take(id);
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_CAPTURES_H_
#define BASE_CUDA_EMULATED_RUNTIME_CAPTURES_H_

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <map>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/operation.h"

namespace emulated_cuda {

struct Graph {
  std::vector<Work> nodes;
  std::vector<std::vector<int>> after;  // index: node
};

struct Capture {
  Graph graph;
  const Stream* origin = nullptr;
  pthread_t thread{};
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_invalid = false;
};

class Captures {
 public:
  // Begins a capture of this thread on `origin`; returns its number, above 0.
  int Begin(const Stream* origin, cudaStreamCaptureMode mode) {
    Capture& capture = under_way_[next_];
    capture.origin = origin;
    capture.thread = pthread_self();
    capture.mode = mode;
    return next_++;
  }
  // Returns null if there is none of that number.
  Capture* Find(int id) {
    const auto found = under_way_.find(id);
    return found == under_way_.end() ? nullptr : &found->second;
  }
  // Removes and returns it.
  Capture Take(int id) {
    Capture capture = std::move(under_way_[id]);
    under_way_.erase(id);
    return capture;
  }
  // Calls visit(capture) for each.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [id, capture] : under_way_) visit(capture);
  }

 private:
  std::map<int, Capture> under_way_;
  int next_ = 1;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_CAPTURES_H_
