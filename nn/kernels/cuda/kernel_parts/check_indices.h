// Reports the first index of a list that is outside an axis or a table. One
// block (blockIdx.x == 0) checks the list while the others of the kernel do its
// work.
//
//   CheckIndices<256>(count, rows, kEmbeddingRow, /*limit=*/n, error);

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_CHECK_INDICES_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_CHECK_INDICES_H_

#include <cstdint>

#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {

struct SmallerIndex {
  __device__ long long operator()(long long a, long long b) const {
    return a < b ? a : b;
  }
};

// Records the first of the indices that is not in [0, limit), if there is one
// and no error was recorded before. All kThreads threads of the block call it.
template <int kThreads>
__device__ void CheckIndices(std::int64_t count, const std::int64_t* indices,
                             DataErrorOp op, std::int64_t limit,
                             DataError* error) {
  constexpr long long kNone = 0x7fffffffffffffff;
  long long wrong = kNone;
  for (std::int64_t at = threadIdx.x; at < count && wrong == kNone;
       at += kThreads) {
    if (indices[at] < 0 || indices[at] >= limit) wrong = at;
  }
  wrong = MergeBlock<kThreads>(wrong, SmallerIndex());
  if (threadIdx.x != 0 || wrong == kNone || error->op != kNoDataError) return;
  error->op = op;
  error->row = wrong;
  error->value = indices[wrong];
  error->limit = limit;
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_CHECK_INDICES_H_
