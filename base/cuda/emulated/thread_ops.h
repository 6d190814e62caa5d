// The functions of the executor that a thread of the emulated GPU uses: its
// position in the grid, barriers, operations of its warp, dynamic shared
// memory. device_code.h gives these their CUDA names; nothing else includes
// this header.
//
//   const int arrived = emulated_cuda::BlockOp(
//       emulated_cuda::Op::kSyncthreadsCount, predicate, CodeSite::Here());
//
// Errors: each function throws Error, inside a kernel and outside. Threads:
// those that run a grid.

#ifndef BASE_CUDA_EMULATED_THREAD_OPS_H_
#define BASE_CUDA_EMULATED_THREAD_OPS_H_

#include <vector_types.h>

#include <cstdint>

// CUDA's own variables, set at every switch to a thread.
inline uint3 threadIdx{};
inline uint3 blockIdx{};
inline dim3 blockDim;
inline dim3 gridDim;

namespace emulated_cuda {

// The source line of a call within a kernel.
struct CodeSite {
  const char* file;
  int line;

  // As a default argument, it is the line of the caller's call.
  static constexpr CodeSite Here(const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Op : unsigned char {
  // Operations of the block.
  kSyncthreads,
  kSyncthreadsCount,
  kSyncthreadsAnd,
  kSyncthreadsOr,
  // Operations of the warp.
  kSyncwarp,
  kShfl,
  kShflUp,
  kShflDown,
  kShflXor,
  kBallot,
  kAny,
  kAll,
  kMatchAny,
  kReduceAdd,
  kReduceMin,
  kReduceMax,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
};

// Waits until all living threads of the block are at this barrier. Returns the
// number with a predicate other than 0; for kSyncthreadsAnd and -Or 1 or 0.
int BlockOp(Op op, int predicate, CodeSite site);

// One lane's arguments of an operation of its warp.
struct LaneCall {
  Op op;
  unsigned mask;        // lanes that take part
  std::uint64_t value;  // this lane's value, its bits in the low end
  // Lane or distance of a shuffle; 1 for a reduction of signed numbers.
  int argument = 0;
  int width = 32;  // lanes of a segment of a shuffle
};

// Waits until all living lanes of the mask make the same call on the same
// source line, and returns this lane's result.
std::uint64_t WarpOp(const LaneCall& call, CodeSite site);

// Returns the block's dynamic shared memory.
void* DynamicSharedMemory();

// Throws an Error that names kernel, block, thread and source line.
[[noreturn]] void Trap(CodeSite site);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_THREAD_OPS_H_
