#include <algorithm>

#include "nn/kernels/batch_norm_host.h"
#include "nn/kernels/cpu/channel_scratch.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// The normalisation of all channels, as the loops take it.
absl::StatusOr<ChannelScratch> Affine(CpuDevice& cpu, In stats, In w, In b) {
  const std::int64_t channels = stats.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
                          ChannelScratch::Zeros(cpu, channels));
  const double *mean = stats.data<double>(), *rstd = mean + channels;
  const float *weight = DataOrNull(w), *bias = DataOrNull(b);
  for (std::int64_t c = 0; c < channels; ++c) {
    s.mean[c] = static_cast<float>(mean[c]);
    s.scale[c] = static_cast<float>(weight ? rstd[c] * weight[c] : rstd[c]);
    s.shift[c] = bias ? bias[c] : 0.0f;
  }
  return s;
}

// The two padded arrays of `s`, and the number of rows.
void StoreSums(const ChannelScratch& s, std::int64_t rows, Tensor& sums) {
  const std::int64_t channels = (sums.numel() - 1) / 2;
  double* to = sums.data<double>();
  std::copy_n(s.sums, channels, to);
  std::copy_n(s.second_sums(), channels, to + channels);
  to[2 * channels] = static_cast<double>(rows);
}

absl::Status BatchNormSums(CpuDevice& cpu, In x, Tensor& sums) {
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
                          ChannelScratch::Zeros(cpu, x.dim(1)));
  cpu.loops().channel_sums(x.dim(0), x.dim(1), x.data<float>(), s.sums);
  StoreSums(s, x.dim(0), sums);
  return absl::OkStatus();
}

absl::Status BatchNormForward(CpuDevice& cpu, In x, In stats, In w, In b,
                              In residual, bool relu, Tensor& y) {
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s, Affine(cpu, stats, w, b));
  cpu.loops().channel_forward(x.dim(0), x.dim(1), s.affine(), x.data<float>(),
                              DataOrNull(residual), relu, y.data<float>());
  return absl::OkStatus();
}

absl::Status BatchNormBackwardSums(CpuDevice& cpu, In x, In stats, In w, In b,
                                   In dy, bool relu, Tensor& sums) {
  const std::int64_t channels = x.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s, Affine(cpu, stats, w, b));
  cpu.loops().channel_gradient_sums(x.dim(0), channels, s.affine(),
                                    x.data<float>(), dy.data<float>(), relu,
                                    s.sums);
  const double* rstd = stats.data<double>() + channels;
  for (std::int64_t c = 0; c < channels; ++c) s.second_sums()[c] *= rstd[c];
  StoreSums(s, x.dim(0), sums);
  return absl::OkStatus();
}

absl::Status BatchNormBackwardInput(CpuDevice& cpu, In x, In stats, In w, In b,
                                    In dy, bool relu, In sums, Tensor& dx) {
  const std::int64_t channels = x.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s, Affine(cpu, stats, w, b));
  if (sums.defined()) {
    const double *sum = sums.data<double>(), rows = sum[2 * channels];
    const double* rstd = stats.data<double>() + channels;
    for (std::int64_t c = 0; c < channels && rows > 0; ++c) {
      const double scale = s.scale[c];
      s.mean_gradient[c] = static_cast<float>(scale * sum[c] / rows);
      s.projected[c] =
          static_cast<float>(scale * rstd[c] * sum[channels + c] / rows);
    }
  }
  cpu.loops().channel_backward(
      x.dim(0), channels, s.affine(),
      sums.defined() ? s.terms() : ChannelGradientTerms{}, x.data<float>(),
      dy.data<float>(), relu, dx.data<float>());
  return absl::OkStatus();
}

absl::Status BatchNormBackwardWeight(CpuDevice&, In sums, bool accumulate,
                                     Tensor& dw, Tensor& db) {
  const double* sum = sums.data<double>();
  WriteGradient(sum + dw.numel(), accumulate, dw);
  WriteGradient(sum, accumulate, db);
  return absl::OkStatus();
}

}  // namespace

void BindBatchNorm(CpuDevice& cpu, BatchNormKernels& ops) {
  BindF32<BatchNormSums>(cpu, ops.BatchNormSums);
  BindF32<BatchNormForward>(cpu, ops.BatchNormForward);
  BindF32<BatchNormBackwardSums>(cpu, ops.BatchNormBackwardSums);
  BindF32<BatchNormBackwardInput>(cpu, ops.BatchNormBackwardInput);
  BindF32<BatchNormBackwardWeight>(cpu, ops.BatchNormBackwardWeight);
  BindBatchNormStatsOnHost(ops);
}

}  // namespace troupe::nn::cpu
