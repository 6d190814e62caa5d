// Cross entropy of logits that ranks share by classes: what a rank computes
// between two sums over the ranks (nn/kernels/loss.h).

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/loss_launch.h"
#include "nn/kernels/cuda/loss_part.h"
#include "nn/kernels/loss.h"

// Letters: N rows, P columns of logits.

namespace troupe::nn::cuda {
namespace {

// The logits of a piece, and what is known of all classes.
struct PieceLoss {
  std::int64_t N, P;
  ClassPiece piece;
  const std::int64_t* targets;
  std::int64_t ignored;
  double smoothing;
  const float* weights;   // [all classes]; null: all 1
  const double* largest;  // [N]

  __device__ __forceinline__ double WeightOf(std::int64_t c) const {
    return weights == nullptr ? 1 : static_cast<double>(weights[c]);
  }
  // Whether row n counts. A target that is no class is reported by the last of
  // the kernels.
  __device__ __forceinline__ bool Counts(std::int64_t n) const {
    const std::int64_t target = targets[n];
    return target != ignored && target >= 0 && target < piece.classes;
  }
};

template <int kRowThreads, typename Value, typename Merge>
__device__ __forceinline__ Value MergeRow(const Value& value, Merge merge) {
  if constexpr (kRowThreads == kWarpThreads) {
    return MergeWarp(value, merge);
  } else {
    return MergeBlock<kRowThreads>(value, merge);
  }
}

// The rows that a group of kRowThreads threads computes, and the index of this
// thread in the group.
struct RowsOfGroup {
  std::int64_t first, step;
  int thread;
};

template <int kRowThreads>
__device__ __forceinline__ RowsOfGroup MyRows() {
  constexpr int kRowsAtOnce = kLossThreads / kRowThreads;
  const int group = static_cast<int>(threadIdx.x) / kRowThreads;
  return {static_cast<std::int64_t>(blockIdx.x) * kRowsAtOnce + group,
          static_cast<std::int64_t>(gridDim.x) * kRowsAtOnce,
          static_cast<int>(threadIdx.x) % kRowThreads};
}

// --- The largest logit of each row ---

// A NaN is larger than all numbers.
struct Larger {
  __device__ __forceinline__ double operator()(double a, double b) const {
    return !(a <= b) && b == b ? a : b;
  }
};

template <int kRowThreads, typename T>
__global__ void __launch_bounds__(kLossThreads)
    LargestKernel(PieceLoss of, const T* logits, double* largest) {
  const RowsOfGroup rows = MyRows<kRowThreads>();
  for (std::int64_t n = rows.first; n < of.N; n += rows.step) {
    double mine = -INFINITY;
    for (std::int64_t i = rows.thread; i < of.piece.count; i += kRowThreads) {
      mine = Larger()(mine, static_cast<double>(Widen(logits[n * of.P + i])));
    }
    mine = MergeRow<kRowThreads>(mine, Larger());
    if (rows.thread == 0) largest[n] = mine;
  }
}

// --- The sums of each row ---

struct SumsOfRow {
  double exp, weighted;
  double before;  // number of classes that show that the target is not first
};
struct AddPieceSums {
  __device__ __forceinline__ SumsOfRow operator()(const SumsOfRow& a,
                                                  const SumsOfRow& b) const {
    return {a.exp + b.exp, a.weighted + b.weighted, a.before + b.before};
  }
};

template <int kRowThreads, typename T>
__device__ __forceinline__ SumsOfRow SumRow(const PieceLoss& of, std::int64_t n,
                                            int thread, const T* row) {
  const auto m = static_cast<float>(of.largest[n]);
  const std::int64_t target = of.targets[n] - of.piece.first;
  SumsOfRow sums = {0, 0, 0};
  for (std::int64_t i = thread; i < of.piece.count; i += kRowThreads) {
    const float x = Widen(row[i]);
    sums.exp += static_cast<double>(expf(x - m));
    if (of.smoothing != 0) {
      sums.weighted +=
          of.WeightOf(of.piece.first + i) * static_cast<double>(x - m);
    }
    const bool shows = i < target ? x == m : i == target && x != m;
    sums.before += shows ? 1 : 0;
  }
  return MergeRow<kRowThreads>(sums, AddPieceSums());
}

template <int kRowThreads, typename T>
__global__ void __launch_bounds__(kLossThreads)
    SumsKernel(PieceLoss of, const T* logits, double* sums) {
  const RowsOfGroup rows = MyRows<kRowThreads>();
  for (std::int64_t n = rows.first; n < of.N; n += rows.step) {
    const T* row = logits + n * of.P;
    const bool counts = of.Counts(n);
    SumsOfRow all = {0, 0, 0};
    if (counts) all = SumRow<kRowThreads>(of, n, rows.thread, row);
    if (rows.thread != 0) continue;
    const std::int64_t own = of.targets[n] - of.piece.first;
    double* of_row = sums + n * kNumPieceSums;
    of_row[kExpSum] = all.exp;
    of_row[kTargetLogit] =
        counts && own >= 0 && own < of.piece.count
            ? static_cast<double>(Widen(row[own])) - of.largest[n]
            : 0;
    of_row[kWeightedSum] = all.weighted;
    of_row[kNotFirst] = all.before > 0 ? 1 : 0;
  }
}

// --- Loss and gradient ---

// Returns the sum of the weights of all classes, in all threads of the block;
// 0 without smoothing.
__device__ double AllWeights(const PieceLoss& of) {
  if (of.smoothing == 0) return 0;
  double mine = 0;
  for (std::int64_t c = threadIdx.x; c < of.piece.classes; c += kLossThreads) {
    mine += of.WeightOf(c);
  }
  return MergeBlock<kLossThreads>(mine, AddValues());
}

// Writes the gradient of row n, whose loss has the factor `scale` for its
// exponentials, `share` for each class and `own` for the target. `d_row` may
// be the row.
template <int kRowThreads, typename T>
__device__ __forceinline__ void PieceGradient(const PieceLoss& of,
                                              std::int64_t n, int thread,
                                              double scale, double share,
                                              double own, const T* row,
                                              T* d_row) {
  const auto m = static_cast<float>(of.largest[n]);
  const auto by = static_cast<float>(scale);
  const std::int64_t target = of.targets[n] - of.piece.first;
  for (std::int64_t i = thread; i < of.P; i += kRowThreads) {
    float d = 0;  // padding keeps it
    if (i < of.piece.count) {
      d = expf(Widen(row[i]) - m) * by;
      if (share != 0) {
        d -= static_cast<float>(share * of.WeightOf(of.piece.first + i));
      }
      if (i == target) d -= static_cast<float>(own);
    }
    Round(d, d_row[i]);
  }
}

template <int kRowThreads, typename T>
__global__ void __launch_bounds__(kLossThreads)
    PieceKernel(PieceLoss of, const T* logits, const double* sums, T* dlogits,
                LossOut out) {
  const RowsOfGroup rows = MyRows<kRowThreads>();
  const double share = of.smoothing / static_cast<double>(of.piece.classes);
  const double all_weights = AllWeights(of);
  LossPart part = NoLoss();
  for (std::int64_t n = rows.first; n < of.N; n += rows.step) {
    const std::int64_t target = of.targets[n];
    T* d_row = dlogits != nullptr ? dlogits + n * of.P : nullptr;
    if (!of.Counts(n)) {
      if (target != of.ignored && rows.thread == 0 &&
          part.wrong_row == kNoRow) {
        part.wrong_row = n;
        part.wrong_target = target;
      }
      for (std::int64_t i = rows.thread; d_row != nullptr && i < of.P;
           i += kRowThreads) {
        Round(0.0f, d_row[i]);
      }
      continue;
    }
    const double* of_row = sums + n * kNumPieceSums;
    const double weight = of.WeightOf(target);
    const double own = (1 - of.smoothing) * weight;
    if (rows.thread == 0) {
      const double log_sum = log(of_row[kExpSum]);
      part.sum += own * (log_sum - of_row[kTargetLogit]);
      part.sum += share * (all_weights * log_sum - of_row[kWeightedSum]);
      part.count += weight;
      part.hits += of_row[kNotFirst] == 0 ? weight : 0;
    }
    if (d_row == nullptr) continue;
    const double scale = (own + share * all_weights) / of_row[kExpSum];
    PieceGradient<kRowThreads>(of, n, rows.thread, scale, share, own,
                               logits + n * of.P, d_row);
  }
  FinishBlock<kLossThreads>(part, out);
}

// --- Calls ---

bool HasLongRows(const PieceLoss& of) { return of.P > kWarpClassesMax; }

// Returns a grid with a row at a time for each group of threads.
base::LaunchShape RowGrid(const PieceLoss& of) {
  const std::int64_t at_once =
      HasLongRows(of) ? 1 : kLossThreads / kWarpThreads;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(
      std::min(kElementBlocksMax, (of.N + at_once - 1) / at_once)));
  shape.block = dim3(kLossThreads);
  return shape;
}

PieceLoss PieceOf(In logits, const ClassPiece& piece) {
  PieceLoss of = {};
  of.N = logits.dim(0);
  of.P = logits.dim(1);
  of.piece = piece;
  return of;
}

PieceLoss PieceOf(In logits, In targets, In class_weights,
                  const CrossEntropyRule& rule, const ClassPiece& piece,
                  In largest) {
  PieceLoss of = PieceOf(logits, piece);
  of.targets = of.N > 0 ? Data<std::int64_t>(targets) : nullptr;
  of.ignored = rule.ignore_index;
  of.smoothing = rule.label_smoothing;
  of.weights = DataOrNull<float>(class_weights);
  of.largest = of.N > 0 ? Data<double>(largest) : nullptr;
  return of;
}

struct PieceLargest {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In logits,
                          const ClassPiece& piece, Tensor& largest) {
    const PieceLoss of = PieceOf(logits, piece);
    if (of.N == 0) return absl::OkStatus();
    return base::Launch("PieceLargest",
                        HasLongRows(of) ? LargestKernel<kLossThreads, T>
                                        : LargestKernel<kWarpThreads, T>,
                        RowGrid(of), cuda.stream, of, Data<T>(logits),
                        Data<double>(largest));
  }
};

struct PieceSums {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In logits, In targets,
                          In class_weights, const CrossEntropyRule& rule,
                          const ClassPiece& piece, In largest, Tensor& sums) {
    const PieceLoss of =
        PieceOf(logits, targets, class_weights, rule, piece, largest);
    if (of.N == 0) return absl::OkStatus();
    return base::Launch("PieceSums",
                        HasLongRows(of) ? SumsKernel<kLossThreads, T>
                                        : SumsKernel<kWarpThreads, T>,
                        RowGrid(of), cuda.stream, of, Data<T>(logits),
                        Data<double>(sums));
  }
};

struct PieceCrossEntropy {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In logits, In targets,
                          In class_weights, const CrossEntropyRule& rule,
                          const ClassPiece& piece, In largest, In sums,
                          Tensor& stats, Tensor& dlogits) {
    const PieceLoss of =
        PieceOf(logits, targets, class_weights, rule, piece, largest);
    const bool some = of.N > 0;
    const std::int64_t blocks =
        std::clamp<std::int64_t>(RowGrid(of).grid.x, /*lo=*/1, kLossBlocksMax);
    TROUPE_ASSIGN_OR_RETURN(const LossLaunch launch,
                            BeginLoss(cuda, blocks, piece.classes, stats));
    TROUPE_RETURN_IF_ERROR(base::Launch(
        "PieceCrossEntropy",
        HasLongRows(of) ? PieceKernel<kLossThreads, T>
                        : PieceKernel<kWarpThreads, T>,
        launch.shape, cuda.stream, of, some ? Data<T>(logits) : nullptr,
        some ? Data<double>(sums) : nullptr,
        some ? DataOrNull<T>(dlogits) : nullptr, launch.out));
    return EndLoss(cuda, launch);
  }
};

}  // namespace

void BindPieceLosses(LossKernels& ops, CudaOps* state) {
  BindFloating<PieceLargest>(ops.PieceLargest, state);
  BindFloating<PieceSums>(ops.PieceSums, state);
  BindFloating<PieceCrossEntropy>(ops.PieceCrossEntropy, state);
}

}  // namespace troupe::nn::cuda
