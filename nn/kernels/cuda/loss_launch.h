// Chooses the grid of a loss, and merges the parts of its blocks (loss_part.h).
//
//   TROUPE_ASSIGN_OR_RETURN(const LossLaunch launch,
//                           BeginLoss(cuda, blocks, /*classes=*/0, stats));
//   // Launch a kernel of launch.shape that writes to launch.out.
//   return EndLoss(cuda, launch);

#ifndef NN_KERNELS_CUDA_LOSS_LAUNCH_H_
#define NN_KERNELS_CUDA_LOSS_LAUNCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"
#include "nn/kernels/cuda/loss_part.h"

namespace troupe::nn::cuda {

inline constexpr int kLossThreads = 256;
inline constexpr std::int64_t kLossBlocksMax = 1024;
// A row of logits with more classes than this is computed by a block.
inline constexpr std::int64_t kWarpClassesMax = 2048;

// Merges the parts of all blocks; launched with one block.
static __global__ void __launch_bounds__(kLossThreads)
    FinishLossKernel(int blocks, LossOut out) {
  LossPart part = NoLoss();
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kLossThreads) {
    part = MergeLosses()(part, out.of_block[i]);
  }
  part = MergeBlock<kLossThreads>(part, MergeLosses());
  if (threadIdx.x == 0) WriteLoss(part, out);
}

// The grid of a loss, and memory for its blocks' parts.
struct LossLaunch {
  base::LaunchShape shape;
  LossOut out;
  Tensor parts;
};

inline absl::StatusOr<LossLaunch> BeginLoss(const CudaOps& cuda,
                                            std::int64_t blocks,
                                            std::int64_t classes,
                                            Tensor& stats) {
  LossLaunch launch;
  launch.out = {Data<double>(stats), cuda.error, classes, nullptr};
  launch.shape.grid = dim3(static_cast<unsigned>(blocks));
  launch.shape.block = dim3(kLossThreads);
  if (blocks == 1) return launch;
  constexpr std::int64_t kWords = sizeof(LossPart) / sizeof(double);
  TROUPE_ASSIGN_OR_RETURN(
      launch.parts,
      Tensor::Create({blocks * kWords}, DType::kF64, *cuda.allocator));
  launch.out.of_block = static_cast<LossPart*>(launch.parts.device_data());
  return launch;
}

inline absl::Status EndLoss(const CudaOps& cuda, const LossLaunch& launch) {
  const int blocks = static_cast<int>(launch.shape.grid.x);
  if (blocks == 1) return absl::OkStatus();
  base::LaunchShape shape;
  shape.block = dim3(kLossThreads);
  return base::Launch("FinishLoss", FinishLossKernel, shape, cuda.stream,
                      blocks, launch.out);
}

// Bind the losses of split logits and those of pairs; BindFamily() calls them.
void BindPieceLosses(LossKernels& ops, CudaOps* state);
void BindPairLosses(LossKernels& ops, CudaOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LOSS_LAUNCH_H_
