// Declares names that the usage comments in base/cuda/emulated/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_CUDA_EMULATED_H_
#define TESTS_USAGE_WORDS_BASE_CUDA_EMULATED_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/cuda/emulated/thread_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"

namespace troupe::usage {

namespace block_h {
extern const emulated_cuda::Grid grid;
extern const std::function<void()> thread_body;
extern emulated_cuda::Random random;
using emulated_cuda::Block;
}  // namespace block_h

namespace cuda_thread_h {
using emulated_cuda::CudaThread;
using emulated_cuda::ThreadState;
extern CudaThread threads[emulated_cuda::kThreadsMax];
extern const unsigned count;
void Enter(CudaThread& thread);
}  // namespace cuda_thread_h

namespace device_math_h {
extern const float a, b, x;
extern int counter;
}  // namespace device_math_h

namespace emulated_cuda_h {
int TrainOneStep();
extern const int expected;
}  // namespace emulated_cuda_h

namespace emulated_nccl_h {
extern const ncclComm_t comm;
}

namespace enqueue_h {
struct Product {
  const float *a, *b;
  float* sum;
};
void MultiplyAll(const Product& product);
}  // namespace enqueue_h

namespace executor_h {
void ScaleOneElement();
}

namespace ready_ring_h {
using emulated_cuda::CudaThread;
extern emulated_cuda::ReadyRing ready;
extern CudaThread thread, threads[emulated_cuda::kThreadsMax];
extern const emulated_cuda::Schedule schedule;
extern emulated_cuda::Random random;
void Enter(CudaThread& thread);
}  // namespace ready_ring_h

namespace report_h {
using emulated_cuda::Error;
using emulated_cuda::ReportOf;
using emulated_cuda::ThreadsByPlace;
extern const emulated_cuda::Grid grid;
extern const emulated_cuda::CudaThread threads[emulated_cuda::kThreadsMax];
extern const unsigned count;
}  // namespace report_h

namespace sanitizer_hooks_h {
extern char edge;
}

namespace schedules_h {
extern const int rows;
extern const std::vector<float> in;
extern cudaStream_t stream;
absl::Status RowSums(int rows, const float* in, float* sums,
                     cudaStream_t stream);
}  // namespace schedules_h

namespace thread_ops_h {
using emulated_cuda::CodeSite;
extern const int predicate;
}  // namespace thread_ops_h

namespace warp_operation_h {
using emulated_cuda::AbsentRead;
extern emulated_cuda::CudaThread warp[emulated_cuda::kWarpLanes];
void Fail(AbsentRead bad);
}  // namespace warp_operation_h

}  // namespace troupe::usage

#endif  // TESTS_USAGE_WORDS_BASE_CUDA_EMULATED_H_
