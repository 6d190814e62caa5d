#include <cstdint>

#include "nn/kernels/batch_norm_stats.h"
#include "nn/kernels/cuda/channel_grid.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

// Letters: R rows, C channels. Statistics are f64 in memory and f32 in the
// formulas; z = (x - mean) scale + shift with scale = rstd w.

namespace troupe::nn::cuda {
namespace {

// The normalisation of all channels, as an affine function of each channel.
template <typename T>
struct Affine {
  std::int64_t C;
  const double* stats;  // [2, C]
  const T* w;           // may be null
  const T* b;           // may be null

  template <int kCount>
  struct Channels {
    float mean[kCount], scale[kCount], shift[kCount];

    __device__ __forceinline__ float Of(float x, int k) const {
      return fmaf(x - mean[k], scale[k], shift[k]);
    }
    // Returns the gradient before the ReLU, or dy if there is none.
    __device__ __forceinline__ float Masked(float x, float dy, bool relu,
                                            int k) const {
      return relu && Of(x, k) <= 0 ? 0 : dy;
    }
  };

  template <int kCount>
  __device__ Channels<kCount> Prepare(std::int64_t c) const {
    Channels<kCount> channels;
    for (int k = 0; k < kCount; ++k) {
      const double rstd = stats[C + c + k];
      channels.mean[k] = static_cast<float>(stats[c + k]);
      channels.scale[k] = static_cast<float>(
          w != nullptr ? rstd * static_cast<double>(Widen(w[c + k])) : rstd);
      channels.shift[k] = b != nullptr ? Widen(b[c + k]) : 0;
    }
    return channels;
  }
};

template <typename T>
Affine<T> AffineOf(In stats, In w, In b) {
  return {stats.dim(1), Data<double>(stats), DataOrNull<T>(w),
          DataOrNull<T>(b)};
}

// Returns whether rows may be read kVectorOf<T> channels at a time.
template <typename T>
bool TakesVectors(std::int64_t C, std::initializer_list<const void*> rows) {
  bool aligned = C % kVectorOf<T> == 0;
  for (const void* address : rows) aligned = aligned && IsAligned(address);
  return aligned;
}

// --- Sums of x and x^2 ---

template <typename T>
struct SumsBody {
  const T* x;

  template <int kCount>
  struct Channels {};
  template <int kCount>
  __device__ Channels<kCount> Prepare(std::int64_t) const {
    return {};
  }
  template <int kCount>
  __device__ void Add(const Channels<kCount>&, std::int64_t, std::int64_t i,
                      double* a, double* b) const {
    const Numbers<float, kCount> v = Load<kCount>(x + i);
    for (int k = 0; k < kCount; ++k) {
      const double wide = v.at[k];
      a[k] += wide;
      b[k] += wide * wide;
    }
  }
};

struct BatchNormSums {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& sums) {
    const SumsBody<T> body{x.numel() > 0 ? Data<T>(x) : nullptr};
    return SumChannels<kVectorOf<T>>("BatchNormSums", cuda, x.dim(0), x.dim(1),
                                     TakesVectors<T>(x.dim(1), {body.x}), body,
                                     Data<double>(sums));
  }
};

// --- Statistics: one block, because the channels share a counter ---

constexpr int kStatsThreads = 256;

template <typename Running>
struct RunningStats {
  Running* mean;  // null: no running statistics
  Running* var;
  long long* batches;
};

template <typename Running>
__global__ void __launch_bounds__(kStatsThreads)
    StatsKernel(std::int64_t C, const double* sums, BatchNormRule rule,
                double* stats, RunningStats<Running> running) {
  const double rows = sums[2 * C];
  const bool tracks = running.mean != nullptr && rows > 0;
  const double weight =
      tracks
          ? WeightOfBatch(rule.momentum, static_cast<double>(*running.batches))
          : 0;
  __syncthreads();  // all threads have read the counter
  for (std::int64_t c = threadIdx.x; c < C; c += kStatsThreads) {
    const BatchMoments batch =
        MomentsOf(sums[c], sums[C + c], rows, rule.centered);
    stats[c] = batch.mean;
    stats[C + c] = RstdOf(batch.var, rule.eps);
    if (!tracks) continue;
    running.mean[c] =
        static_cast<Running>(Towards(running.mean[c], batch.mean, weight));
    running.var[c] = static_cast<Running>(
        Towards(running.var[c], batch.unbiased_var, weight));
  }
  if (tracks && threadIdx.x == 0) ++*running.batches;
}

template <typename Running>
absl::Status LaunchStats(const CudaOps& cuda, In sums,
                         const BatchNormRule& rule, Tensor& stats,
                         Tensor& running_mean, Tensor& running_var,
                         Tensor& num_batches) {
  RunningStats<Running> running{};
  if (running_mean.defined()) {
    running = {Data<Running>(running_mean), Data<Running>(running_var),
               static_cast<long long*>(num_batches.device_data())};
  }
  base::LaunchShape shape;
  shape.block = dim3(kStatsThreads);
  return base::Launch("BatchNormStats", StatsKernel<Running>, shape,
                      cuda.stream, stats.dim(1), Data<double>(sums), rule,
                      Data<double>(stats), running);
}

absl::Status BatchNormStats(const CudaOps& cuda, In sums,
                            const BatchNormRule& rule, Tensor& stats,
                            Tensor& running_mean, Tensor& running_var,
                            Tensor& num_batches) {
  const bool wide =
      running_mean.defined() && running_mean.dtype() == DType::kF64;
  if (running_mean.defined() && !wide && running_mean.dtype() != DType::kF32) {
    return DoesNotCompute("BatchNormStats", running_mean.dtype(),
                          stats.device());
  }
  return wide ? LaunchStats<double>(cuda, sums, rule, stats, running_mean,
                                    running_var, num_batches)
              : LaunchStats<float>(cuda, sums, rule, stats, running_mean,
                                   running_var, num_batches);
}

template <typename Running>
struct KeptStatsBody {
  std::int64_t C;
  const Running* mean;
  const Running* var;
  double eps;
  double* stats;

  template <int kCount>
  __device__ void At(std::int64_t c) const {
    stats[c] = mean[c];
    stats[C + c] = RstdOf(var[c], eps);
  }
};

template <typename Running>
absl::Status LaunchKeptStats(const CudaOps& cuda, In running_mean,
                             In running_var, double eps, Tensor& stats) {
  const KeptStatsBody<Running> body{stats.dim(1), Data<Running>(running_mean),
                                    Data<Running>(running_var), eps,
                                    Data<double>(stats)};
  return ForEachElement<1>("BatchNormRunningStats", cuda.stream, body.C,
                           /*aligned=*/false, body);
}

absl::Status BatchNormRunningStats(const CudaOps& cuda, In running_mean,
                                   In running_var, double eps, Tensor& stats) {
  switch (running_mean.dtype()) {
    case DType::kF32:
      return LaunchKeptStats<float>(cuda, running_mean, running_var, eps,
                                    stats);
    case DType::kF64:
      return LaunchKeptStats<double>(cuda, running_mean, running_var, eps,
                                     stats);
    default:
      return DoesNotCompute("BatchNormRunningStats", running_mean.dtype(),
                            stats.device());
  }
}

// --- Forward ---

template <typename T>
struct ForwardBody {
  Affine<T> affine;
  const T* x;
  const T* residual;  // may be null
  bool relu;
  T* y;

  template <int kCount>
  __device__ auto Prepare(std::int64_t c) const {
    return affine.template Prepare<kCount>(c);
  }
  template <int kCount>
  __device__ void At(
      const typename Affine<T>::template Channels<kCount>& channels,
      std::int64_t i) const {
    Numbers<float, kCount> v = Load<kCount>(x + i);
    for (int k = 0; k < kCount; ++k) v.at[k] = channels.Of(v.at[k], k);
    if (residual != nullptr) {
      const Numbers<float, kCount> added = Load<kCount>(residual + i);
      for (int k = 0; k < kCount; ++k) v.at[k] += added.at[k];
    }
    if (relu) {
      for (float& z : v.at) z = z <= 0 ? 0 : z;  // NaN stays
    }
    Store(v, y + i);
  }
};

struct BatchNormForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, In stats, In w, In b,
                          In residual, bool relu, Tensor& y) {
    if (x.numel() == 0) return absl::OkStatus();
    const ForwardBody<T> body{AffineOf<T>(stats, w, b), Data<T>(x),
                              DataOrNull<T>(residual), relu, Data<T>(y)};
    return ForEachChannelRow<kVectorOf<T>>(
        "BatchNormForward", cuda.stream, x.dim(0), x.dim(1),
        TakesVectors<T>(x.dim(1), {body.x, body.residual, body.y}), body);
  }
};

// --- Backward ---

template <typename T>
struct GradientSumsBody {
  Affine<T> affine;
  const T* x;
  const T* dy;
  bool relu;

  template <int kCount>
  struct Channels {
    typename Affine<T>::template Channels<kCount> affine;
    double rstd[kCount];
  };
  template <int kCount>
  __device__ Channels<kCount> Prepare(std::int64_t c) const {
    Channels<kCount> channels;
    channels.affine = affine.template Prepare<kCount>(c);
    for (int k = 0; k < kCount; ++k) {
      channels.rstd[k] = affine.stats[affine.C + c + k];
    }
    return channels;
  }
  template <int kCount>
  __device__ void Add(const Channels<kCount>& channels, std::int64_t,
                      std::int64_t i, double* a, double* b) const {
    const Numbers<float, kCount> v = Load<kCount>(x + i);
    const Numbers<float, kCount> d = Load<kCount>(dy + i);
    for (int k = 0; k < kCount; ++k) {
      const double dz = channels.affine.Masked(v.at[k], d.at[k], relu, k);
      const double hat = (v.at[k] - channels.affine.mean[k]) * channels.rstd[k];
      a[k] += dz;
      b[k] += dz * hat;
    }
  }
};

struct BatchNormBackwardSums {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, In stats, In w, In b,
                          In dy, bool relu, Tensor& sums) {
    const bool empty = x.numel() == 0;
    const GradientSumsBody<T> body{AffineOf<T>(stats, w, b),
                                   empty ? nullptr : Data<T>(x),
                                   empty ? nullptr : Data<T>(dy), relu};
    return SumChannels<kVectorOf<T>>(
        "BatchNormBackwardSums", cuda, x.dim(0), x.dim(1),
        TakesVectors<T>(x.dim(1), {body.x, body.dy}), body, Data<double>(sums));
  }
};

template <typename T>
struct BackwardBody {
  Affine<T> affine;
  const double* sums;  // null: the statistics are constants
  const T* x;
  const T* dy;
  bool relu;
  T* dx;

  template <int kCount>
  struct Channels {
    typename Affine<T>::template Channels<kCount> affine;
    float mean_gradient[kCount], projected[kCount];
  };
  template <int kCount>
  __device__ Channels<kCount> Prepare(std::int64_t c) const {
    Channels<kCount> channels{};
    channels.affine = affine.template Prepare<kCount>(c);
    if (sums == nullptr) return channels;
    const std::int64_t C = affine.C;
    for (int k = 0; k < kCount; ++k) {
      const double share =
          static_cast<double>(channels.affine.scale[k]) / sums[2 * C];
      channels.mean_gradient[k] = static_cast<float>(share * sums[c + k]);
      channels.projected[k] =
          static_cast<float>(share * affine.stats[C + c + k] * sums[C + c + k]);
    }
    return channels;
  }
  template <int kCount>
  __device__ void At(const Channels<kCount>& channels, std::int64_t i) const {
    const Numbers<float, kCount> v = Load<kCount>(x + i);
    Numbers<float, kCount> d = Load<kCount>(dy + i);
    for (int k = 0; k < kCount; ++k) {
      const auto& of = channels.affine;
      d.at[k] = of.Masked(v.at[k], d.at[k], relu, k) * of.scale[k];
      if (sums == nullptr) continue;
      d.at[k] -= fmaf(v.at[k] - of.mean[k], channels.projected[k],
                      channels.mean_gradient[k]);
    }
    Store(d, dx + i);
  }
};

struct BatchNormBackwardInput {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, In stats, In w, In b,
                          In dy, bool relu, In sums, Tensor& dx) {
    if (x.numel() == 0) return absl::OkStatus();
    const BackwardBody<T> body{AffineOf<T>(stats, w, b),
                               DataOrNull<double>(sums),
                               Data<T>(x),
                               Data<T>(dy),
                               relu,
                               Data<T>(dx)};
    return ForEachChannelRow<kVectorOf<T>>(
        "BatchNormBackwardInput", cuda.stream, x.dim(0), x.dim(1),
        TakesVectors<T>(x.dim(1), {body.x, body.dy, body.dx}), body);
  }
};

struct BatchNormBackwardWeight {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In sums, bool accumulate,
                          Tensor& dw, Tensor& db) {
    return WriteWeightGradients<T>("BatchNormBackwardWeight", cuda.stream,
                                   dw.numel(), Data<double>(sums), accumulate,
                                   dw, db);
  }
};

}  // namespace

template <>
void BindFamily(BatchNormKernels& ops, CudaOps* state) {
  BindFloating<BatchNormSums>(ops.BatchNormSums, state);
  ops.BatchNormStats.Bind<BatchNormStats>(state);
  ops.BatchNormRunningStats.Bind<BatchNormRunningStats>(state);
  BindFloating<BatchNormForward>(ops.BatchNormForward, state);
  BindFloating<BatchNormBackwardSums>(ops.BatchNormBackwardSums, state);
  BindFloating<BatchNormBackwardInput>(ops.BatchNormBackwardInput, state);
  BindFloating<BatchNormBackwardWeight>(ops.BatchNormBackwardWeight, state);
}

}  // namespace troupe::nn::cuda
