#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/cuda_ops.h"
#include "nn/kernels/cuda/dispatch.h"
#include "nn/kernels/cuda/element_grid.h"
#include "nn/kernels/cuda/elements.h"
#include "nn/kernels/cuda/loss_part.h"
#include "nn/kernels/cuda/softmax_row.h"

// Letters: N rows, C classes.

namespace troupe::nn::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kBlocksMax = 1024;

__global__ void __launch_bounds__(kThreads)
    FinishLossKernel(int blocks, LossOut out) {
  LossPart part = NoLoss();
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    part = MergeLosses()(part, out.of_block[i]);
  }
  part = MergeBlock<kThreads>(part, MergeLosses());
  if (threadIdx.x == 0) WriteLoss(part, out);
}

// The grid of a loss, and memory for its blocks' parts.
struct LossLaunch {
  base::LaunchShape shape;
  LossOut out;
  Tensor parts;
};

absl::StatusOr<LossLaunch> BeginLoss(const CudaOps& cuda, std::int64_t blocks,
                                     std::int64_t classes, Tensor& stats) {
  LossLaunch launch;
  launch.out = {Data<double>(stats), cuda.error, classes, nullptr};
  launch.shape.grid = dim3(static_cast<unsigned>(blocks));
  launch.shape.block = dim3(kThreads);
  if (blocks == 1) return launch;
  constexpr std::int64_t kWords = sizeof(LossPart) / sizeof(double);
  TROUPE_ASSIGN_OR_RETURN(
      launch.parts,
      Tensor::Create({blocks * kWords}, DType::kF64, *cuda.allocator));
  launch.out.of_block = static_cast<LossPart*>(launch.parts.device_data());
  return launch;
}

absl::Status EndLoss(const CudaOps& cuda, const LossLaunch& launch) {
  const int blocks = static_cast<int>(launch.shape.grid.x);
  if (blocks == 1) return absl::OkStatus();
  base::LaunchShape shape;
  shape.block = dim3(kThreads);
  return base::Launch("FinishLoss", FinishLossKernel, shape, cuda.stream,
                      blocks, launch.out);
}

// --- Cross entropy: a warp for a row, or a block where rows are long ---

// Rows longer than this have a block each.
constexpr std::int64_t kWarpClassesMax = 2048;
// Rows that one block takes before there is another.
constexpr std::int64_t kRowsOfBlock = 64;

struct CrossEntropy {
  std::int64_t N;
  int C;
  const std::int64_t* targets;
  std::int64_t ignored;
  LossOut out;
};

// Loss and gradient of row n by kRowThreads threads, of which this is number
// `thread`; the sums are added to `part` in thread 0.
template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ void CrossEntropyRow(const CrossEntropy& loss,
                                                std::int64_t n, int thread,
                                                const T* logits, T* dlogits,
                                                LossPart& part) {
  const std::int64_t target = loss.targets[n];
  const bool counted = target != loss.ignored && target >= 0 && target < loss.C;
  T* d_row = dlogits != nullptr ? dlogits + n * loss.C : nullptr;
  if (!counted) {
    if (target != loss.ignored && thread == 0 && part.wrong_row == kNoRow) {
      part.wrong_row = n;
      part.wrong_target = target;
    }
    if (d_row != nullptr)
      FillZeros<kVector, kRowThreads>(loss.C, thread, d_row);
    return;
  }
  const T* row = logits + n * loss.C;
  const SoftmaxOfRow all =
      SoftmaxSums<kVector, kRowThreads>(loss.C, thread, row);
  if (thread == 0) {
    part.sum += log(all.sum) - (static_cast<double>(Widen(row[target])) -
                                static_cast<double>(all.largest));
    part.count += 1;
    part.hits += all.index == target ? 1 : 0;
  }
  if (d_row != nullptr) {
    SoftmaxGradient<kVector, kRowThreads>(loss.C, thread, all,
                                          static_cast<int>(target), row, d_row);
  }
}

template <int kVector, int kRowThreads, typename T>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyKernel(CrossEntropy loss, const T* logits, T* dlogits) {
  constexpr int kRowsAtOnce = kThreads / kRowThreads;
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  const int group = static_cast<int>(threadIdx.x) / kRowThreads;
  LossPart part = NoLoss();
  for (std::int64_t n =
           static_cast<std::int64_t>(blockIdx.x) * kRowsAtOnce + group;
       n < loss.N; n += static_cast<std::int64_t>(gridDim.x) * kRowsAtOnce) {
    CrossEntropyRow<kVector, kRowThreads>(loss, n, thread, logits, dlogits,
                                          part);
  }
  FinishBlock<kThreads>(part, loss.out);
}

template <typename T>
using CrossEntropyFn = void (*)(CrossEntropy, const T*, T*);

template <typename T>
CrossEntropyFn<T> ChooseCrossEntropy(bool vectors, bool long_rows) {
  constexpr int kVector = kVectorOf<T>;
  if (long_rows) {
    return vectors ? CrossEntropyKernel<kVector, kThreads, T>
                   : CrossEntropyKernel<1, kThreads, T>;
  }
  return vectors ? CrossEntropyKernel<kVector, kWarpThreads, T>
                 : CrossEntropyKernel<1, kWarpThreads, T>;
}

struct SoftmaxCrossEntropy {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In logits, In targets,
                          std::int64_t ignore_index, Tensor& stats,
                          Tensor& dlogits) {
    const std::int64_t N = logits.dim(0), C = logits.dim(1);
    const bool long_rows = C > kWarpClassesMax;
    const std::int64_t rows_of_block = long_rows ? 1 : kRowsOfBlock;
    const std::int64_t blocks = std::clamp<std::int64_t>(
        (N + rows_of_block - 1) / rows_of_block, 1, kBlocksMax);
    TROUPE_ASSIGN_OR_RETURN(const LossLaunch launch,
                            BeginLoss(cuda, blocks, C, stats));
    const T* from = N > 0 ? Data<T>(logits) : nullptr;
    T* to = N > 0 ? DataOrNull<T>(dlogits) : nullptr;
    const bool vectors =
        IsAligned(from) && IsAligned(to) && C % kVectorOf<T> == 0;
    const CrossEntropy loss{N, static_cast<int>(C),
                            N > 0 ? Data<std::int64_t>(targets) : nullptr,
                            ignore_index, launch.out};
    TROUPE_RETURN_IF_ERROR(base::Launch(
        "SoftmaxCrossEntropy", ChooseCrossEntropy<T>(vectors, long_rows),
        launch.shape, cuda.stream, loss, from, to));
    return EndLoss(cuda, launch);
  }
};

// --- Squared errors ---

// Elements that one block takes before there is another.
constexpr std::int64_t kErrorsOfBlock = 1 << 13;

template <typename T>
struct SquaredErrors {
  std::int64_t count;
  const T* prediction;
  const T* target;
  T* dprediction;  // may be null
  LossOut out;

  // The sum of the squares of the elements [i, i + kCount).
  template <int kCount>
  __device__ double At(std::int64_t i) const {
    Numbers<float, kCount> error = Load<kCount>(prediction + i);
    const Numbers<float, kCount> wanted = Load<kCount>(target + i);
    double sum = 0;
    for (int k = 0; k < kCount; ++k) {
      error.at[k] = error.at[k] - wanted.at[k];
      const double wide = error.at[k];
      sum += wide * wide;
      error.at[k] = 2 * error.at[k];
    }
    if (dprediction != nullptr) Store(error, dprediction + i);
    return sum;
  }
};

template <int kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    SquaredErrorKernel(SquaredErrors<T> loss) {
  LossPart part = NoLoss();
  const std::int64_t vectors = loss.count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    part.sum += loss.template At<kVector>(v * kVector);
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < loss.count) part.sum += loss.template At<1>(i);
  }
  if (ThreadOfGrid() == 0) part.count = static_cast<double>(loss.count);
  FinishBlock<kThreads>(part, loss.out);
}

struct MeanSquaredError {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In prediction, In target,
                          Tensor& stats, Tensor& dprediction) {
    const std::int64_t n = prediction.numel();
    const std::int64_t blocks = std::clamp<std::int64_t>(
        (n + kErrorsOfBlock - 1) / kErrorsOfBlock, 1, kBlocksMax);
    TROUPE_ASSIGN_OR_RETURN(const LossLaunch launch,
                            BeginLoss(cuda, blocks, 0, stats));
    const SquaredErrors<T> loss{n, n > 0 ? Data<T>(prediction) : nullptr,
                                n > 0 ? Data<T>(target) : nullptr,
                                n > 0 ? DataOrNull<T>(dprediction) : nullptr,
                                launch.out};
    const bool aligned = IsAligned(loss.prediction) && IsAligned(loss.target) &&
                         IsAligned(loss.dprediction);
    TROUPE_RETURN_IF_ERROR(
        base::Launch("MeanSquaredError",
                     aligned ? SquaredErrorKernel<kVectorOf<T>, T>
                             : SquaredErrorKernel<1, T>,
                     launch.shape, cuda.stream, loss));
    return EndLoss(cuda, launch);
  }
};

// --- Statistics of several losses ---

__global__ void CombineKernel(const double* a, double weight_a, const double* b,
                              double weight_b, double* stats) {
  const double sum = weight_a * a[0];
  const double added = b != nullptr ? weight_b * b[0] : 0;
  const double count = a[1], hits = a[2];
  stats[0] = sum + added;
  stats[1] = count;
  stats[2] = hits;
}

absl::Status CombineLosses(const CudaOps& cuda, In a, double weight_a, In b,
                           double weight_b, Tensor& stats) {
  return base::Launch("CombineLosses", CombineKernel, base::LaunchShape(),
                      cuda.stream, Data<double>(a), weight_a,
                      DataOrNull<double>(b), weight_b, Data<double>(stats));
}

}  // namespace

void BindLoss(LossKernels& ops, CudaOps* state) {
  BindFloating<SoftmaxCrossEntropy>(ops.SoftmaxCrossEntropy, state);
  BindFloating<MeanSquaredError>(ops.MeanSquaredError, state);
  ops.CombineLosses.Bind<CombineLosses>(state);
}

}  // namespace troupe::nn::cuda
