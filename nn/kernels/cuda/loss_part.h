// The partial sums of a loss kernel: those of a thread, of a block, or of all
// blocks.
//
//   LossPart part = NoLoss();
//   part.sum += loss_of_row, part.count += 1;
//   FinishBlock<kThreads>(part, out);          // the end of the kernel
//
// A block writes its part. If there are several blocks, a second kernel of one
// block merges the parts; if there is one block, its part is the loss
// (WriteLoss()).

#ifndef NN_KERNELS_CUDA_LOSS_PART_H_
#define NN_KERNELS_CUDA_LOSS_PART_H_

#include "absl/status/status.h"
#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {

struct LossPart {
  double sum;
  double count;
  double hits;
  long long wrong_row;  // first row whose target is no class, or kNoRow
  long long wrong_target;
};

inline constexpr long long kNoRow = 0x7fffffffffffffff;

__device__ __forceinline__ LossPart NoLoss() { return {0, 0, 0, kNoRow, 0}; }

struct MergeLosses {
  __device__ __forceinline__ LossPart operator()(const LossPart& a,
                                                 const LossPart& b) const {
    const LossPart& first = a.wrong_row < b.wrong_row ? a : b;
    return {a.sum + b.sum, a.count + b.count, a.hits + b.hits, first.wrong_row,
            first.wrong_target};
  }
};

// The outputs of a loss.
struct LossOut {
  double* stats;       // f64[3]
  DataError* error;    // receives a kCrossEntropyTarget error
  long long classes;   // limit of targets
  LossPart* of_block;  // [blocks]; null if there is one block
};

__device__ __forceinline__ void WriteLoss(const LossPart& all,
                                          const LossOut& out) {
  out.stats[0] = all.sum;
  out.stats[1] = all.count;
  out.stats[2] = all.hits;
  if (all.wrong_row == kNoRow || out.error->op != kNoDataError) return;
  out.error->op = kCrossEntropyTarget;
  out.error->row = all.wrong_row;
  out.error->value = all.wrong_target;
  out.error->limit = out.classes;
}

// Merges the parts of the block's threads and writes the result. Called at the
// end of a kernel.
template <int kThreads>
__device__ __forceinline__ void FinishBlock(LossPart part, const LossOut& out) {
  part = MergeBlock<kThreads>(part, MergeLosses());
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    WriteLoss(part, out);
  } else {
    out.of_block[blockIdx.x] = part;
  }
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LOSS_PART_H_
