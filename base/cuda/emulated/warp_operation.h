// Computes the result of a warp operation for each lane. For executor.cc.
//
//   const AbsentRead bad = ComputeWarpOperation(warp, /*lanes=*/0x0000FFFF);
//   if (bad.reader >= 0) Fail(bad);
//
// Threads: those of the executor.

#ifndef BASE_CUDA_EMULATED_WARP_OPERATION_H_
#define BASE_CUDA_EMULATED_WARP_OPERATION_H_

#include "base/cuda/emulated/cuda_thread.h"

namespace emulated_cuda {

// A shuffle that reads a lane which does not take part; -1: there is none.
struct AbsentRead {
  int reader = -1;
  int lane = -1;
};

// Sets `result` of the lanes of `warp` whose bits are set in `lanes`, from
// their calls, which are the same operation.
AbsentRead ComputeWarpOperation(CudaThread* warp, unsigned lanes);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_WARP_OPERATION_H_
