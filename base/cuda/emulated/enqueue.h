// Enqueues the emulation's operations: base::Launch(), and host functions that
// replace library calls, pass their work to a stream here.
//
//   void EnqueueProduct(cudaStream_t stream, Product product) {
//     emulated_cuda::EnqueueHostWork(stream, {"Product", __FILE__, __LINE__},
//                                    [product] { MultiplyAll(product); });
//   }
//
// Two libraries define the functions, and a program links one of them:
// :immediate_launch runs the work at once, for tests of kernels; the runtime
// queues it on the stream, for tests of code with several streams.
//
// Both return null, or the name of the error for which nothing was queued, such
// as "cudaErrorInvalidResourceHandle".
//
// `run` may be called any number of times (a graph is replayed), later and in
// another thread; so it contains copies, and pointers to device memory only.

#ifndef BASE_CUDA_EMULATED_ENQUEUE_H_
#define BASE_CUDA_EMULATED_ENQUEUE_H_

#include <cuda_runtime_api.h>

#include <functional>

namespace emulated_cuda {

// Name of the work, and the source line that enqueued it; string literals.
struct LaunchSite {
  const char* name;
  const char* file;
  int line;
};

// `run` runs the whole grid: RunGrid() of executor.h. It throws Error if the
// kernel does what hardware would turn into a hang or garbage.
const char* EnqueueKernel(cudaStream_t stream, const LaunchSite& site,
                          std::function<void()> run);

// `run` reads and writes device memory as a kernel would, in plain host code.
const char* EnqueueHostWork(cudaStream_t stream, const LaunchSite& site,
                            std::function<void()> run);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_ENQUEUE_H_
