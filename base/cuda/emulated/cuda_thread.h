// State of one thread of a block: a fiber, its position in the block, and the
// call it waits in. For the files of the executor.
//
//   for (unsigned i = 0; i < count; ++i) {
//     if (threads[i].state == ThreadState::kReady) Enter(threads[i]);
//   }
//
// Threads: those of the executor.

#ifndef BASE_CUDA_EMULATED_CUDA_THREAD_H_
#define BASE_CUDA_EMULATED_CUDA_THREAD_H_

#include <vector_types.h>

#include <boost/context/fiber.hpp>
#include <cstdint>

#include "base/cuda/emulated/thread_ops.h"

namespace emulated_cuda {

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kThreadsMax = 1024;  // limit for a block

enum class ThreadState : unsigned char {
  kReady,      // can run
  kAtBarrier,  // waits for the block
  kInWarpOp,   // waits for lanes of its warp
  kDone,       // has returned
};

struct CudaThread {
  unsigned id = 0;  // x + y * blockDim.x + z * blockDim.x * blockDim.y
  uint3 index{};
  ThreadState state = ThreadState::kDone;
  bool started = false;  // whether it has run in this block

  // Call that it waits in. At a barrier call.value is the predicate.
  LaneCall call{};
  CodeSite site{};
  std::uint64_t result = 0;

  boost::context::fiber fiber;  // this thread, while it waits
  boost::context::fiber back;   // the scheduler, while this thread runs
  char* stack = nullptr;        // lowest byte of its own stack
  char* runs_on = nullptr;      // lowest byte of the stack it runs on
  void* asan_save = nullptr;
  void* tsan_fiber = nullptr;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_CUDA_THREAD_H_
