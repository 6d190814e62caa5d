// Text of the executor's errors. For executor.cc.
//
//   throw Error(ReportOf("deadlock: ...", grid, blockIdx) +
//               ThreadsByPlace(threads, count));
//
// Threads: any.

#ifndef BASE_CUDA_EMULATED_REPORT_H_
#define BASE_CUDA_EMULATED_REPORT_H_

#include <string>

#include "base/cuda/emulated/cuda_thread.h"
#include "base/cuda/emulated/executor.h"
#include "base/cuda/emulated/thread_ops.h"

namespace emulated_cuda {

// Returns "__syncthreads".
const char* NameOf(Op op);

// Returns "nn/kernels/cuda/loss.cu:42".
std::string TextOf(CodeSite site);
std::string TextOf(dim3 size);        // "(8,4,1)"
std::string MaskText(unsigned mask);  // "0xffffffff"

// Returns "thread 40 (lane 8)".
std::string ThreadText(const CudaThread& thread);

// Returns "emulated_cuda: WHAT
//    in ReluForward, launched at elementwise.cu:90, block (0,0,0) of grid
//    (4,1,1)".
std::string ReportOf(const std::string& what, const Grid& grid, uint3 block);

// Returns one line for each place where threads of the block are:
// "\n  threads 0-31, 64 wait at __syncthreads loss.cu:42".
std::string ThreadsByPlace(const CudaThread* threads, unsigned count);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_REPORT_H_
