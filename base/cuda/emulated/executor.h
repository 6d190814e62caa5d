// Runs a grid of CUDA threads on the CPU: each thread of a block is a fiber,
// and __syncthreads() and the warp operations are real barriers among them.
// Blocks run one after another. It tests logic; it is not fast.
//
//   emulated_cuda::SetSchedule({emulated_cuda::Order::kRandom, /*seed=*/7});
//   emulated_cuda::Grid grid;
//   grid.site = {"Scale", __FILE__, __LINE__};
//   grid.block = dim3(256);
//   emulated_cuda::RunGrid(grid, [] { ScaleOneElement(); });
//
// base::Launch() calls RunGrid(); tests of kernels use schedules.h.
//
// Errors: RunGrid() throws Error. Threads: any; one grid runs at a time, and
// others wait for it. Limits: those of sm_90, and 256 KiB of stack per thread.
// Cost: 50 to 100 ns for a thread at a barrier or warp operation.

#ifndef BASE_CUDA_EMULATED_EXECUTOR_H_
#define BASE_CUDA_EMULATED_EXECUTOR_H_

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "base/cuda/emulated/enqueue.h"

namespace emulated_cuda {

// An error that hardware would turn into a hang, garbage or a sticky error:
// threads that wait for each other, a wrong mask, a shuffle from an absent
// lane. The text names kernel, block, threads and source lines.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Order in which the blocks of a grid, and the runnable threads of a block, are
// chosen. Forward: first in, first out, so that warps advance together.
// Reverse: last in, first out, so that one warp runs ahead as far as possible.
enum class Order { kForward, kReverse, kRandom };

// Order and poison. A correct kernel gives the same bits under all of them.
struct Schedule {
  Order order = Order::kForward;
  std::uint64_t seed = 1;  // for kRandom
  // Byte that fills shared memory before each block, static variables only
  // behind a block with a barrier or a warp operation: without one, threads
  // share nothing there. The default gives a NaN in every floating-point type.
  unsigned char poison = 0xFF;
};

// Sets the schedule of all later grids. Must not be called while one runs.
void SetSchedule(const Schedule& schedule);
Schedule CurrentSchedule();

struct Grid {
  LaunchSite site{"a kernel", "", 0};
  dim3 grid = dim3(1);
  dim3 block = dim3(1);
  std::size_t shared_bytes = 0;
};

// Returns why a device would reject the grid; empty if it would not.
std::string WhatIsWrong(const Grid& grid);

// Calls `thread_body` once for each thread of the grid, and returns when all
// have returned. Throws Error, after unwinding the remaining threads.
void RunGrid(const Grid& grid, const std::function<void()>& thread_body);

// The accesses that ThreadSanitizer compares. Without it this has no effect.
enum class RaceScope {
  // Accesses of the threads of a grid: each is a fiber of the sanitizer.
  kThreads,
  // Accesses of whole operations: a thread counts as the caller of RunGrid(),
  // such as the fiber of a stream. Shared memory and the threads' stacks are
  // excluded, since all streams use the same.
  kStreams,
};

// Sets the scope of all later grids; kThreads at first. Must not be called
// while one runs.
void SetRaceScope(RaceScope scope);

struct Stats {
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t waits = 0;  // one thread at one barrier or warp operation
};

// Returns the totals of all grids so far.
Stats TotalStats();

// Returns false if the program was linked without shared_memory.ld: then the
// static __shared__ variables are not poisoned.
bool StaticSharedIsPoisoned();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EXECUTOR_H_
