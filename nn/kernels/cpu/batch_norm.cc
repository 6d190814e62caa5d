#include <algorithm>

#include "nn/kernels/batch_norm_host.h"
#include "nn/kernels/cpu/channel_scratch.h"
#include "nn/kernels/cpu/row_slices.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Slices begin at multiples of 8 rows, which the sums take together.
RowsToCut RowsOf(const Tensor& x) { return {x.dim(0), /*together=*/8}; }

// Returns the normalisation of all channels, for the loops.
absl::StatusOr<ChannelScratch> Affine(CpuDevice& cpu, In stats, In weights,
                                      In biases) {
  const std::int64_t channels = stats.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const Tensor w, AsF32(cpu, weights));
  TROUPE_ASSIGN_OR_RETURN(const Tensor b, AsF32(cpu, biases));
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

// Stores the padded arrays of `s`, and the number of rows.
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
  const absl::Status status =
      ForEachRowSlice(cpu, RowsOf(x), {&x}, {}, [&](const RowSlice& at) {
        cpu.loops().channel_sums(at.rows, x.dim(1), at.in[0], s.sums);
      });
  StoreSums(s, x.dim(0), sums);
  return status;
}

absl::Status BatchNormForward(CpuDevice& cpu, In x, In stats, In w, In b,
                              In residual, bool relu, Tensor& y) {
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s, Affine(cpu, stats, w, b));
  return ForEachRowSlice(
      cpu, RowsOf(x), {&x, &residual}, {&y}, [&](const RowSlice& at) {
        cpu.loops().channel_forward(at.rows, x.dim(1), s.affine(), at.in[0],
                                    at.in[1], relu, at.out[0]);
      });
}

absl::Status BatchNormBackwardSums(CpuDevice& cpu, In x, In stats, In w, In b,
                                   In dy, bool relu, Tensor& sums) {
  const std::int64_t channels = x.dim(1);
  TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s, Affine(cpu, stats, w, b));
  const absl::Status status =
      ForEachRowSlice(cpu, RowsOf(x), {&x, &dy}, {}, [&](const RowSlice& at) {
        cpu.loops().channel_gradient_sums(at.rows, channels, s.affine(),
                                          at.in[0], at.in[1], relu, s.sums);
      });
  const double* rstd = stats.data<double>() + channels;
  for (std::int64_t c = 0; c < channels; ++c) s.second_sums()[c] *= rstd[c];
  StoreSums(s, x.dim(0), sums);
  return status;
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
  const ChannelGradientTerms terms =
      sums.defined() ? s.terms() : ChannelGradientTerms{};
  return ForEachRowSlice(
      cpu, RowsOf(x), {&x, &dy}, {&dx}, [&](const RowSlice& at) {
        cpu.loops().channel_backward(at.rows, channels, s.affine(), terms,
                                     at.in[0], at.in[1], relu, at.out[0]);
      });
}

absl::Status BatchNormBackwardWeight(CpuDevice&, In sums, bool accumulate,
                                     Tensor& dw, Tensor& db) {
  const double* sum = sums.data<double>();
  WriteGradient(sum + dw.numel(), accumulate, dw);
  WriteGradient(sum, accumulate, db);
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, BatchNormKernels& ops) {
  BindByRows<BatchNormSums>(cpu, ops.BatchNormSums);
  BindByRows<BatchNormForward>(cpu, ops.BatchNormForward);
  BindByRows<BatchNormBackwardSums>(cpu, ops.BatchNormBackwardSums);
  BindByRows<BatchNormBackwardInput>(cpu, ops.BatchNormBackwardInput);
  BindF32<BatchNormBackwardWeight>(cpu, ops.BatchNormBackwardWeight);
  BindBatchNormStatsOnHost(ops);
}

}  // namespace troupe::nn::cpu
