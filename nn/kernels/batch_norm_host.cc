#include "nn/kernels/batch_norm_host.h"

#include <cstdint>

#include "nn/kernels/batch_norm_stats.h"

namespace troupe::nn {
namespace {

template <typename ThisOp>
absl::Status Refuse(const ThisOp& op, const Tensor& running) {
  return DoesNotCompute(op.name(), running.dtype(), op.device());
}

template <typename T>
void Track(const double* sums, std::int64_t channels, bool centered,
           double weight, T* mean, T* var) {
  const double rows = sums[2 * channels];
  for (std::int64_t c = 0; c < channels; ++c) {
    const BatchMoments batch =
        MomentsOf(sums[c], sums[channels + c], rows, centered);
    mean[c] = static_cast<T>(Towards(mean[c], batch.mean, weight));
    var[c] = static_cast<T>(Towards(var[c], batch.unbiased_var, weight));
  }
}

template <typename ThisOp>
absl::Status Stats(const ThisOp& op, FixedIn all, const BatchNormRule& rule,
                   FixedOut stats, FixedOut running_mean, FixedOut running_var,
                   FixedOut num_batches) {
  const std::int64_t channels = stats.tensor.dim(1);
  const double* sums = all.tensor.data<double>();
  double* stat = stats.tensor.template data<double>();
  const double rows = sums[2 * channels];
  for (std::int64_t c = 0; c < channels; ++c) {
    const BatchMoments batch =
        MomentsOf(sums[c], sums[channels + c], rows, rule.centered);
    stat[c] = batch.mean;
    stat[channels + c] = RstdOf(batch.var, rule.eps);
  }
  Tensor &mean = running_mean, &var = running_var;
  if (!mean.defined() || rows == 0) return absl::OkStatus();
  std::int64_t& batches = *num_batches.tensor.data<std::int64_t>();
  const double weight =
      WeightOfBatch(rule.momentum, static_cast<double>(batches));
  if (mean.dtype() == DType::kF32) {
    Track(sums, channels, rule.centered, weight, mean.data<float>(),
          var.data<float>());
  } else if (mean.dtype() == DType::kF64) {
    Track(sums, channels, rule.centered, weight, mean.data<double>(),
          var.data<double>());
  } else {
    return Refuse(op, mean);
  }
  ++batches;
  return absl::OkStatus();
}

template <typename T>
void KeptStats(const T* mean, const T* var, std::int64_t channels, double eps,
               double* stat) {
  for (std::int64_t c = 0; c < channels; ++c) {
    stat[c] = mean[c];
    stat[channels + c] = RstdOf(var[c], eps);
  }
}

template <typename ThisOp>
absl::Status RunningStats(const ThisOp& op, FixedIn running_mean,
                          FixedIn running_var, double eps, FixedOut stats) {
  const Tensor &mean = running_mean, &var = running_var;
  double* stat = stats.tensor.template data<double>();
  if (mean.dtype() == DType::kF32) {
    KeptStats(mean.data<float>(), var.data<float>(), mean.numel(), eps, stat);
  } else if (mean.dtype() == DType::kF64) {
    KeptStats(mean.data<double>(), var.data<double>(), mean.numel(), eps, stat);
  } else {
    return Refuse(op, mean);
  }
  return absl::OkStatus();
}

}  // namespace

void BindBatchNormStatsOnHost(BatchNormKernels& ops) {
  ops.BatchNormStats.BindFunction(Stats, nullptr);
  ops.BatchNormRunningStats.BindFunction(RunningStats, nullptr);
}

}  // namespace troupe::nn
