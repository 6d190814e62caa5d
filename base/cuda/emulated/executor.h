// Runs a grid of CUDA threads on the CPU: each thread of a block is a fiber,
// and __syncthreads() and the warp operations are real barriers among them.
// Blocks run one after another. For logic, not for speed.
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
// others wait for it. Limits: those of sm_90, and 256 KiB of stack a thread.
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

// What hardware would answer with a hang, garbage or a sticky error: threads
// that wait for each other, a wrong mask, a shuffle from an absent lane. The
// text names kernel, block, threads and source lines.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The order in which the blocks of a grid, and the runnable threads of a block,
// are taken. Forward: first come, first served, so that warps advance together.
// Reverse: last come, first served, so that one warp runs ahead as far as it
// can.
enum class Order { kForward, kReverse, kRandom };

// A right kernel gives the same bits under all of them.
struct Schedule {
  Order order = Order::kForward;
  std::uint64_t seed = 1;  // of kRandom
  // What every byte of shared memory holds before each block; the default is a
  // NaN in every floating type.
  unsigned char poison = 0xFF;
};

// For all grids that follow. Not while one runs.
void SetSchedule(const Schedule& schedule);
Schedule CurrentSchedule();

struct Grid {
  LaunchSite site{"a kernel", "", 0};
  dim3 grid = dim3(1);
  dim3 block = dim3(1);
  std::size_t shared_bytes = 0;
};

// Why a device would not take the grid, in words; empty if it would.
std::string WhatIsWrong(const Grid& grid);

// Calls `thread_body` once for each thread of the grid, and returns when all
// have returned. Throws Error; the threads that are left are unwound then.
void RunGrid(const Grid& grid, const std::function<void()>& thread_body);

// What ThreadSanitizer compares. Without that sanitizer nothing changes.
enum class RaceScope {
  // The threads of a grid with each other: each is a fiber of the sanitizer's.
  kThreads,
  // Whole operations with each other: a thread counts as whoever calls
  // RunGrid(), such as the fiber of a stream. Shared memory and the threads'
  // stacks are left out, since all streams use the same.
  kStreams,
};

// For all grids that follow; kThreads at first. Not while one runs.
void SetRaceScope(RaceScope scope);

struct Stats {
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t waits = 0;  // one thread at one barrier or warp operation
};

// What all grids so far have cost.
Stats TotalStats();

// False when the program was linked without shared_memory.ld: then the static
// __shared__ variables are not poisoned.
bool StaticSharedIsPoisoned();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EXECUTOR_H_
