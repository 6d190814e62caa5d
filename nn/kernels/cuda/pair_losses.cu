// Losses of pairs of elements: a prediction and its target.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/loss_launch.h"
#include "nn/kernels/cuda/loss_part.h"

namespace troupe::nn::cuda {
namespace {

// Elements for each block, up to kLossBlocksMax blocks.
constexpr std::int64_t kErrorsOfBlock = 1 << 13;

// Result of Loss::Of(p, t): the loss of prediction p for target t, and its
// derivative by p.
struct LossOfPair {
  double value;
  float derivative;
};

struct SquaredError {
  __device__ __forceinline__ LossOfPair Of(float p, float t) const {
    const float error = p - t;
    const double wide = error;
    return {wide * wide, 2 * error};
  }
};

struct AbsoluteDistance {
  __device__ __forceinline__ LossOfPair Of(float p, float t) const {
    const float error = p - t;
    const float sign = error > 0 ? 1 : error < 0 ? -1 : 0 * error;
    return {fabs(static_cast<double>(error)), sign};
  }
};

struct HuberDistance {
  float delta, scale;

  __device__ __forceinline__ LossOfPair Of(float p, float t) const {
    const float error = p - t;
    const float cut = error > delta ? delta : error < -delta ? -delta : error;
    const double slope = static_cast<double>(scale * cut);
    return {slope * (static_cast<double>(error) - 0.5 * cut), scale * cut};
  }
};

struct BinaryCrossEntropy {
  float pos_weight;

  __device__ __forceinline__ LossOfPair Of(float x, float t) const {
    const float weight = 1 + (pos_weight - 1) * t;
    const float decay = expf(-fabsf(x));
    const float softplus = (x < 0 ? -x : 0) + log1pf(decay);
    const float sigmoid = (x < 0 ? 1 : decay) / (1 + decay);  // sigmoid(-x)
    return {static_cast<double>((1 - t) * x) +
                static_cast<double>(weight * softplus),
            (1 - t) - weight * sigmoid};
  }
};

template <typename Loss, typename T>
struct Pairs {
  Loss loss;
  std::int64_t count;
  const T* prediction;
  const T* target;
  T* dprediction;  // may be null
  LossOut out;

  // Returns the sum of the losses of elements [i, i + kCount), and stores their
  // derivatives.
  template <int kCount>
  __device__ double At(std::int64_t i) const {
    Numbers<float, kCount> p = Load<kCount>(prediction + i);
    const Numbers<float, kCount> wanted = Load<kCount>(target + i);
    double sum = 0;
    for (int k = 0; k < kCount; ++k) {
      const LossOfPair one = loss.Of(p.at[k], wanted.at[k]);
      sum += one.value;
      p.at[k] = one.derivative;
    }
    if (dprediction != nullptr) Store(p, dprediction + i);
    return sum;
  }
};

template <int kVector, typename Loss, typename T>
__global__ void __launch_bounds__(kLossThreads)
    PairsKernel(Pairs<Loss, T> loss) {
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
  FinishBlock<kLossThreads>(part, loss.out);
}

template <typename T, typename Loss>
absl::Status SumPairs(base::KernelName name, const CudaOps& cuda, In prediction,
                      In target, Loss loss, Tensor& stats,
                      Tensor& dprediction) {
  const std::int64_t n = prediction.numel();
  const std::int64_t blocks = std::clamp<std::int64_t>(
      (n + kErrorsOfBlock - 1) / kErrorsOfBlock, 1, kLossBlocksMax);
  TROUPE_ASSIGN_OR_RETURN(const LossLaunch launch,
                          BeginLoss(cuda, blocks, 0, stats));
  const Pairs<Loss, T> pairs{loss,
                             n,
                             n > 0 ? Data<T>(prediction) : nullptr,
                             n > 0 ? Data<T>(target) : nullptr,
                             n > 0 ? DataOrNull<T>(dprediction) : nullptr,
                             launch.out};
  const bool aligned = IsAligned(pairs.prediction) && IsAligned(pairs.target) &&
                       IsAligned(pairs.dprediction);
  TROUPE_RETURN_IF_ERROR(base::Launch(
      name,
      aligned ? PairsKernel<kVectorOf<T>, Loss, T> : PairsKernel<1, Loss, T>,
      launch.shape, cuda.stream, pairs));
  return EndLoss(cuda, launch);
}

struct PairLoss {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const PairLossRule& rule,
                          In prediction, In target, Tensor& stats,
                          Tensor& dprediction) {
    const auto sum = [&](base::KernelName name, auto loss) {
      return SumPairs<T>(name, cuda, prediction, target, loss, stats,
                         dprediction);
    };
    const auto p = static_cast<float>(rule.p), q = static_cast<float>(rule.q);
    switch (rule.function) {
      case PairLossFunction::kSquaredError:
        return sum("MeanSquaredError", SquaredError());
      case PairLossFunction::kAbsoluteError:
        return sum("AbsoluteError", AbsoluteDistance());
      case PairLossFunction::kHuber:
        return sum("HuberLoss", HuberDistance{/*delta=*/p, /*scale=*/q});
      case PairLossFunction::kBceWithLogits:
        return sum("BceWithLogits", BinaryCrossEntropy{/*pos_weight=*/p});
    }
    return absl::InternalError("no such function");
  }
};

}  // namespace

void BindPairLosses(LossKernels& ops, CudaOps* state) {
  BindFloating<PairLoss>(ops.PairLoss, state);
}

}  // namespace troupe::nn::cuda
