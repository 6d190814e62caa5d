// Runs work when it is enqueued, on any stream: for tests of kernels, which
// need no streams. An Error of a kernel propagates through base::Launch().

#include <functional>

#include "base/cuda/emulated/enqueue.h"

namespace emulated_cuda {

const char* EnqueueKernel(cudaStream_t, const LaunchSite&,
                          std::function<void()> run) {
  run();
  return nullptr;
}

const char* EnqueueHostWork(cudaStream_t, const LaunchSite&,
                            std::function<void()> run) {
  run();
  return nullptr;
}

}  // namespace emulated_cuda
