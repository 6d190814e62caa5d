// Norms and clipping of gradients, averages of parameters, and their rounding.

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/philox_words.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"
#include "nn/kernels/cuda/kernel_parts/update_kernel.h"

namespace troupe::nn::cuda {
namespace {

// --- AddSquares: the sum of each block, then the sum over blocks ---

constexpr int kThreads = 256;
// Elements for each block, up to kBlocksMax blocks.
constexpr std::int64_t kElementsOfBlock = 1 << 14;
constexpr std::int64_t kBlocksMax = 1024;

// Returns the sum of the squares of this block's elements.
template <int kVector, typename T>
__device__ double SquaresOfBlock(std::int64_t count, const T* x) {
  double sum = 0;
  const std::int64_t vectors = count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    const Numbers<float, kVector> values = Load<kVector>(x + v * kVector);
    for (float value : values.at) {
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < count) {
      const double value = Widen(x[i]);
      sum += value * value;
    }
  }
  return MergeBlock<kThreads>(sum, AddValues());
}

// Adds to total[0] if there is one block; otherwise writes of_block[blocks].
template <int kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    SquaresKernel(std::int64_t count, const T* x, double* of_block,
                  double* total) {
  const double sum = SquaresOfBlock<kVector>(count, x);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    *total += sum;
  } else {
    of_block[blockIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    AddSquaresKernel(int blocks, const double* of_block, double* total) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) {
    sum += of_block[i];
  }
  sum = MergeBlock<kThreads>(sum, AddValues());
  if (threadIdx.x == 0) *total += sum;
}

struct AddSquares {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& sum) {
    const std::int64_t n = x.numel();
    if (n == 0) return absl::OkStatus();
    const T* from = Data<T>(x);
    const std::int64_t blocks =
        std::min(kBlocksMax, (n + kElementsOfBlock - 1) / kElementsOfBlock);
    Tensor parts;
    if (blocks > 1) {
      TROUPE_ASSIGN_OR_RETURN(
          parts, Tensor::Create({blocks}, DType::kF64, *cuda.allocator));
    }
    double* const of_block = DataOrNull<double>(parts);
    base::LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(blocks));
    shape.block = dim3(kThreads);
    const auto kernel =
        IsAligned(from) ? SquaresKernel<kVectorOf<T>, T> : SquaresKernel<1, T>;
    TROUPE_RETURN_IF_ERROR(base::Launch("AddSquares", kernel, shape,
                                        cuda.stream, n, from, of_block,
                                        Data<double>(sum)));
    if (blocks == 1) return absl::OkStatus();
    shape.grid = dim3(1);
    return base::Launch("AddSquares.Add", AddSquaresKernel, shape, cuda.stream,
                        static_cast<int>(blocks), of_block, Data<double>(sum));
  }
};

// --- Clipping and averages ---

template <typename T>
struct ClipBody {
  double limit;
  const StepScalars* scalars;
  const T* grad;
  T* clipped;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const float most = static_cast<float>(limit * DivisorOf(*scalars));
    Numbers<float, kCount> g = Load<kCount>(grad + i);
    for (float& value : g.at) {
      value = value > most ? most : value < -most ? -most : value;
    }
    Store(g, clipped + i);
  }
};

struct ClipGradient {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, double limit, In scalars,
                          In grad, Tensor& clipped) {
    if (grad.numel() == 0) return absl::OkStatus();
    const ClipBody<T> body{limit, ScalarsOn(scalars), Data<T>(grad),
                           Data<T>(clipped)};
    return ForEachElement<kVectorOf<T>>(
        "ClipGradient", cuda.stream, grad.numel(),
        IsAligned(body.grad) && IsAligned(body.clipped), body);
  }
};

template <typename T>
struct EmaBody {
  struct Step {};

  float towards;  // 1 - decay
  const T* param;
  T* average;

  __device__ __forceinline__ Step StepOf(const StepScalars&) const {
    return {};
  }

  template <int kCount>
  __device__ void At(const Step&, std::int64_t i) const {
    const Numbers<float, kCount> p = Load<kCount>(param + i);
    Numbers<float, kCount> a = Load<kCount>(average + i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      a.at[k] =
          __fadd_rn(a.at[k], __fmul_rn(towards, __fsub_rn(p.at[k], a.at[k])));
    }
    Store(a, average + i);
  }
};

struct EmaUpdate {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, double decay, In scalars,
                          In param, Tensor& average) {
    if (param.numel() == 0) return absl::OkStatus();
    const EmaBody<T> body{static_cast<float>(1 - decay), Data<T>(param),
                          Data<T>(average)};
    return LaunchUpdate<T>("EmaUpdate", cuda, param.numel(), scalars,
                           IsAligned(body.param) && IsAligned(body.average),
                           body);
  }
};

// A thread rounds the elements of one block of draws.
__global__ void __launch_bounds__(kElementThreads)
    RoundAtRandomKernel(std::int64_t count, DeviceDraws draws,
                        std::int64_t first, const StepScalars* scalars,
                        const float* values, std::uint16_t* rounded) {
  constexpr std::int64_t kBlock = 4;
  const DeviceDraws now = draws.AtStep(static_cast<unsigned>(scalars->step));
  const std::int64_t blocks = (first % kBlock + count + kBlock - 1) / kBlock;
  for (std::int64_t b = ThreadOfGrid(); b < blocks; b += ThreadsOfGrid()) {
    const uint4 words = now.Block(/*sample=*/0, first / kBlock + b);
    const unsigned of_block[kBlock] = {words.x, words.y, words.z, words.w};
    for (int k = 0; k < kBlock; ++k) {
      const std::int64_t i = b * kBlock + k - first % kBlock;
      if (i < 0 || i >= count) continue;
      const unsigned bits = __float_as_uint(values[i]);
      const unsigned sum = isnan(values[i]) ? bits | 0x400000u  // quiet
                                            : bits + (of_block[k] & 0xffffu);
      rounded[i] = static_cast<std::uint16_t>(sum >> 16);
    }
  }
}

absl::Status RoundAtRandom(const CudaOps& cuda, const RoundingDraws& draws,
                           In scalars, In values, Tensor& rounded) {
  if (values.numel() == 0) return absl::OkStatus();
  RandomPosition at;
  at.path = draws.path;
  return base::Launch(
      "RoundAtRandom", RoundAtRandomKernel, GridOf(values.numel() / 4 + 2),
      cuda.stream, values.numel(),
      DeviceDraws({draws.key, at}, /*place=*/nullptr), draws.first,
      ScalarsOn(scalars), Data<float>(values),
      reinterpret_cast<std::uint16_t*>(Data<__nv_bfloat16>(rounded)));
}

__global__ void ClipFactorKernel(double max_norm, StepScalars* scalars) {
  const double divisor = DivisorOf(*scalars);
  const double mean = divisor == 0 ? 0 : 1 / divisor;
  const double factor = max_norm / (sqrt(scalars->square_sum) * mean + 1e-6);
  scalars->grad_factor = factor > 1 ? 1 : factor;
}

absl::Status SetClipFactor(const CudaOps& cuda, double max_norm,
                           Tensor& scalars) {
  return base::Launch("SetClipFactor", ClipFactorKernel, base::LaunchShape(),
                      cuda.stream, max_norm,
                      reinterpret_cast<StepScalars*>(Data<double>(scalars)));
}

}  // namespace

void BindClipping(OptimizerKernels& ops, CudaOps* state) {
  BindFloating<AddSquares>(ops.AddSquares, state);
  ops.SetClipFactor.Bind<SetClipFactor>(state);
  BindFloating<ClipGradient>(ops.ClipGradient, state);
  BindFloating<EmaUpdate>(ops.EmaUpdate, state);
  ops.RoundAtRandom.Bind<RoundAtRandom>(state);
}

}  // namespace troupe::nn::cuda
