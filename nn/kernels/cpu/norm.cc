#include <algorithm>

#include "nn/kernels/batch_norm_stats.h"
#include "nn/kernels/cpu/channel_scratch.h"
#include "nn/kernels/cpu/row_slices.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Whether each row of memory is one group: layer norm and RMS norm. Otherwise
// channel_loops.h handles the channels, one sample after another.
bool RowsAreGroups(const NormRule& rule, const Tensor& x) {
  return rule.groups == 1 && x.dim(1) == 1;
}

// Extents of the groups of a sample's channels.
struct Groups {
  Groups(const NormRule& rule, const Tensor& x)
      : samples(x.dim(0)),
        places(x.dim(1)),
        channels(x.dim(2)),
        groups(rule.groups),
        width(channels / groups),
        count(static_cast<double>(places * width)) {}

  std::int64_t floats_of_sample() const { return places * channels; }

  const std::int64_t samples, places, channels, groups, width;
  const double count;  // elements of a group
};

double SumOf(const double* sums, std::int64_t width) {
  double sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += sums[c];
  return sum;
}

// Computes mean and rstd of each group from the sums of its channels.
void StatsOfSample(const NormRule& rule, const Groups& all,
                   const ChannelScratch& s, double* stats) {
  for (std::int64_t g = 0; g < all.groups; ++g) {
    const double sum =
        rule.centered ? SumOf(s.sums + g * all.width, all.width) : 0;
    const double squares = SumOf(s.second_sums() + g * all.width, all.width);
    const BatchMoments of_group = MomentsOf(sum, squares, all.count);
    stats[2 * g] = of_group.mean;
    stats[2 * g + 1] = RstdOf(of_group.var, rule.eps);
  }
}

void SetAffine(const Groups& all, const double* stats, const float* w,
               const float* b, const ChannelScratch& s) {
  for (std::int64_t c = 0; c < all.channels; ++c) {
    const double* of_group = stats + c / all.width * 2;
    s.mean[c] = static_cast<float>(of_group[0]);
    s.scale[c] = static_cast<float>(w ? of_group[1] * w[c] : of_group[1]);
    s.shift[c] = b ? b[c] : 0.0f;
  }
}

absl::Status GroupsForward(CpuDevice& cpu, const NormRule& rule, In x, In w,
                           In b, Tensor& y, Tensor& stats) {
  const Groups all(rule, x);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  double* stat = stats.data<double>();
  for (std::int64_t n = 0; n < all.samples; ++n) {
    TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
                            ChannelScratch::Zeros(cpu, all.channels));
    cpu.loops().channel_sums(all.places, all.channels, from, s.sums);
    StatsOfSample(rule, all, s, stat);
    SetAffine(all, stat, DataOrNull(w), DataOrNull(b), s);
    cpu.loops().channel_forward(all.places, all.channels, s.affine(), from,
                                /*residual=*/nullptr, /*relu=*/false, to);
    from += all.floats_of_sample();
    to += all.floats_of_sample();
    stat += 2 * all.groups;
  }
  return absl::OkStatus();
}

// Sets the terms that mean and variance subtract from the gradient, from the
// sums of dy and dy (x - mean) of each channel.
void SetTerms(const NormRule& rule, const Groups& all, const double* stats,
              const float* w, const ChannelScratch& s) {
  for (std::int64_t g = 0; g < all.groups; ++g) {
    const double rstd = stats[2 * g + 1];
    const std::int64_t begin = g * all.width, end = begin + all.width;
    double sum = 0, projected = 0;
    for (std::int64_t c = begin; c < end; ++c) {
      const double weight = w ? w[c] : 1;
      sum += weight * s.sums[c];
      projected += weight * s.second_sums()[c];
    }
    const double mean = rule.centered ? rstd * sum / all.count : 0;
    const double slope = rstd * rstd * rstd * projected / all.count;
    for (std::int64_t c = begin; c < end; ++c) {
      s.mean_gradient[c] = static_cast<float>(mean);
      s.projected[c] = static_cast<float>(slope);
    }
  }
}

absl::Status GroupsBackwardInput(CpuDevice& cpu, const NormRule& rule, In x,
                                 In stats, In w, In dy, Tensor& dx) {
  const Groups all(rule, x);
  const float *from = x.data<float>(), *d = dy.data<float>();
  float* to = dx.data<float>();
  const double* stat = stats.data<double>();
  for (std::int64_t n = 0; n < all.samples; ++n) {
    TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
                            ChannelScratch::Zeros(cpu, all.channels));
    SetAffine(all, stat, DataOrNull(w), /*b=*/nullptr, s);
    cpu.loops().channel_gradient_sums(all.places, all.channels, s.affine(),
                                      from, d, /*relu=*/false, s.sums);
    SetTerms(rule, all, stat, DataOrNull(w), s);
    cpu.loops().channel_backward(all.places, all.channels, s.affine(),
                                 s.terms(), from, d, /*relu=*/false, to);
    from += all.floats_of_sample();
    d += all.floats_of_sample();
    to += all.floats_of_sample();
    stat += 2 * all.groups;
  }
  return absl::OkStatus();
}

// Computes the sums of dy and of dy xhat, over all samples.
absl::Status GroupsWeightSums(CpuDevice& cpu, const NormRule& rule, In x,
                              In stats, In dy, Tensor& sums) {
  const Groups all(rule, x);
  const float *from = x.data<float>(), *d = dy.data<float>();
  const double* stat = stats.data<double>();
  double *sum = sums.data<double>(),
         *scaled = sum + PaddedChannels(all.channels);
  for (std::int64_t n = 0; n < all.samples; ++n) {
    TROUPE_ASSIGN_OR_RETURN(const ChannelScratch s,
                            ChannelScratch::Zeros(cpu, all.channels));
    SetAffine(all, stat, /*w=*/nullptr, /*b=*/nullptr, s);
    cpu.loops().channel_gradient_sums(all.places, all.channels, s.affine(),
                                      from, d, /*relu=*/false, s.sums);
    for (std::int64_t c = 0; c < all.channels; ++c) {
      sum[c] += s.sums[c];
      scaled[c] += s.second_sums()[c] * stat[c / all.width * 2 + 1];
    }
    from += all.floats_of_sample();
    d += all.floats_of_sample();
    stat += 2 * all.groups;
  }
  return absl::OkStatus();
}

absl::Status NormForward(CpuDevice& cpu, const NormRule& rule, In x, In w, In b,
                         Tensor& y, Tensor& stats) {
  if (!RowsAreGroups(rule, x)) {
    return GroupsForward(cpu, rule, x, w, b, y, stats);
  }
  cpu.loops().norm_rows_forward(x.dim(0), x.dim(2), rule.centered, rule.eps,
                                x.data<float>(), DataOrNull(w), DataOrNull(b),
                                y.data<float>(), stats.data<double>());
  return absl::OkStatus();
}

absl::Status AddNormForward(CpuDevice& cpu, const NormRule& rule, In a, In b,
                            In w, In bias, Tensor& sum, Tensor& y,
                            Tensor& stats) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor weight, AsF32(cpu, w));
  TROUPE_ASSIGN_OR_RETURN(const Tensor added, AsF32(cpu, bias));
  const std::int64_t d = a.dim(2);
  RowSlices slices(cpu, {a.dim(0), /*together=*/1, /*cuts_f32=*/true}, {&a, &b},
                   {&sum, &y});
  TROUPE_RETURN_IF_ERROR(slices.Prepare());
  RowSlice at;
  while (slices.Next(at)) {
    cpu.loops().add(at.rows * d, at.in[0], at.in[1], at.out[0]);
    slices.Round(at, 0);
    cpu.loops().norm_rows_forward(
        at.rows, d, rule.centered, rule.eps, at.out[0], DataOrNull(weight),
        DataOrNull(added), at.out[1], stats.data<double>() + 2 * at.first);
  }
  return absl::OkStatus();
}

absl::Status AddNormBackwardInput(CpuDevice& cpu, const NormRule& rule, In x,
                                  In stats, In w, In dy, In base, Tensor& dx) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor weight, AsF32(cpu, w));
  const std::int64_t d = x.dim(2);
  RowSlices slices(cpu, {x.dim(0), /*together=*/1, /*cuts_f32=*/true},
                   {&x, &dy, &base}, {&dx});
  TROUPE_RETURN_IF_ERROR(slices.Prepare());
  RowSlice at;
  while (slices.Next(at)) {
    cpu.loops().norm_rows_backward_input(at.rows, d, rule.centered, at.in[0],
                                         stats.data<double>() + 2 * at.first,
                                         DataOrNull(weight), at.in[1],
                                         at.out[0]);
    slices.Round(at, 0);
    cpu.loops().add(at.rows * d, at.in[2], at.out[0], at.out[0]);
  }
  return absl::OkStatus();
}

absl::Status NormBackwardInput(CpuDevice& cpu, const NormRule& rule, In x,
                               In stats, In w, In dy, Tensor& dx) {
  if (!RowsAreGroups(rule, x)) {
    return GroupsBackwardInput(cpu, rule, x, stats, w, dy, dx);
  }
  cpu.loops().norm_rows_backward_input(
      x.dim(0), x.dim(2), rule.centered, x.data<float>(), stats.data<double>(),
      DataOrNull(w), dy.data<float>(), dx.data<float>());
  return absl::OkStatus();
}

absl::Status NormBackwardWeight(CpuDevice& cpu, const NormRule& rule, In x,
                                In stats, In dy, bool accumulate, Tensor& dw,
                                Tensor& db) {
  const std::int64_t padded = PaddedChannels(x.dim(2));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor sums, Tensor::Create({2 * padded}, DType::kF64, cpu.allocator()));
  std::fill_n(sums.data<double>(), 2 * padded, 0.0);
  if (RowsAreGroups(rule, x)) {
    cpu.loops().norm_rows_backward_weight(
        x.dim(0), x.dim(2), x.data<float>(), stats.data<double>(),
        dy.data<float>(), sums.data<double>());
  } else {
    TROUPE_RETURN_IF_ERROR(GroupsWeightSums(cpu, rule, x, stats, dy, sums));
  }
  WriteGradient(sums.data<double>() + padded, accumulate, dw);
  WriteGradient(sums.data<double>(), accumulate, db);
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, NormKernels& ops) {
  BindF32<NormForward>(cpu, ops.NormForward);
  BindByRows<AddNormForward>(cpu, ops.AddNormForward);
  BindF32<NormBackwardInput>(cpu, ops.NormBackwardInput);
  BindByRows<AddNormBackwardInput>(cpu, ops.AddNormBackwardInput);
  BindF32<NormBackwardWeight>(cpu, ops.NormBackwardWeight);
}

}  // namespace troupe::nn::cpu
