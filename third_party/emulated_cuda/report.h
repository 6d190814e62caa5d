// The words of the executor's errors. For executor.cc.
//
//   throw Error(ReportOf("deadlock: ...", grid, blockIdx) +
//               ThreadsByPlace(threads, count));
//
// Threads: any.

#ifndef THIRD_PARTY_EMULATED_CUDA_REPORT_H_
#define THIRD_PARTY_EMULATED_CUDA_REPORT_H_

#include <string>

#include "third_party/emulated_cuda/cuda_thread.h"
#include "third_party/emulated_cuda/executor.h"
#include "third_party/emulated_cuda/thread_ops.h"

namespace emulated_cuda {

// "__syncthreads"
const char* NameOf(Op op);

// "nn/kernels/cuda/loss.cu:42"
std::string TextOf(CodeSite site);
std::string TextOf(dim3 size);        // "(8,4,1)"
std::string MaskText(unsigned mask);  // "0xffffffff"

// "thread 40 (lane 8)"
std::string ThreadText(const CudaThread& thread);

// "emulated_cuda: WHAT
//    in ReluForward, launched at elementwise.cu:90, block (0,0,0) of grid
//    (4,1,1)"
std::string ReportOf(const std::string& what, const Grid& grid, uint3 block);

// One line for each place where threads of the block are:
// "\n  threads 0-31, 64 wait at __syncthreads loss.cu:42".
std::string ThreadsByPlace(const CudaThread* threads, unsigned count);

}  // namespace emulated_cuda

#endif  // THIRD_PARTY_EMULATED_CUDA_REPORT_H_
