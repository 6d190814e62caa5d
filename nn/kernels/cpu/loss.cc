#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

void SetStats(double sum, double count, double hits, Tensor& stats) {
  double* s = stats.data<double>();
  s[0] = sum;
  s[1] = count;
  s[2] = hits;
}

// Sums losses over the counted rows. `row` takes the number of a row, its
// target, the place for its gradient or null, and the place for whether it is a
// hit, and returns its loss; `weight(target)` is the weight of the row in the
// count.
template <typename Weight, typename Row>
absl::Status SumRows(CpuDevice& cpu, In logits, In targets,
                     std::int64_t ignore_index, Tensor& stats, Tensor& dlogits,
                     Weight weight, Row row) {
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  const std::int64_t* target = targets.data<std::int64_t>();
  float* d = DataOrNull(dlogits);
  double sum = 0, counted = 0, hits = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    float* d_row = d ? d + i * classes : nullptr;
    if (target[i] == ignore_index) {
      if (d) cpu.loops().fill(classes, 0.0f, d_row);
      continue;
    }
    if (target[i] < 0 || target[i] >= classes) {
      return absl::OutOfRangeError(
          absl::StrCat("SoftmaxCrossEntropy: the target of row ", i, " is ",
                       target[i], ", but there are ", classes, " classes"));
    }
    bool hit = false;
    sum += row(i, target[i], d_row, &hit);
    counted += weight(target[i]);
    if (hit) hits += weight(target[i]);
  }
  SetStats(sum, counted, hits, stats);
  return absl::OkStatus();
}

absl::Status SoftmaxCrossEntropy(CpuDevice& cpu, In logits, In targets,
                                 const CrossEntropyRule& rule, Tensor& stats,
                                 Tensor& dlogits) {
  const std::int64_t classes = logits.dim(1);
  const float* x = logits.data<float>();
  return SumRows(
      cpu, logits, targets, rule.ignore_index, stats, dlogits,
      [](std::int64_t) { return 1.0; },
      [&](std::int64_t i, std::int64_t target, float* d_row, bool* hit) {
        return cpu.loops().cross_entropy_row(classes, x + i * classes, target,
                                             d_row, hit);
      });
}

absl::Status WeightedCrossEntropy(CpuDevice& cpu, In logits, In targets,
                                  In class_weights,
                                  const CrossEntropyRule& rule, Tensor& stats,
                                  Tensor& dlogits) {
  const std::int64_t classes = logits.dim(1);
  const float* x = logits.data<float>();
  const float* weights =
      class_weights.defined() ? class_weights.data<float>() : nullptr;
  return SumRows(
      cpu, logits, targets, rule.ignore_index, stats, dlogits,
      [&](std::int64_t target) -> double {
        return weights ? weights[target] : 1;
      },
      [&](std::int64_t i, std::int64_t target, float* d_row, bool* hit) {
        return cpu.loops().weighted_cross_entropy_row(
            classes, x + i * classes, target, weights, rule.label_smoothing,
            d_row, hit);
      });
}

absl::Status PairLoss(CpuDevice& cpu, const PairLossRule& rule, In prediction,
                      In target, Tensor& stats, Tensor& dprediction) {
  const std::int64_t n = prediction.numel();
  const double sum =
      cpu.loops().pair_loss(rule, n, prediction.data<float>(),
                            target.data<float>(), DataOrNull(dprediction));
  SetStats(sum, static_cast<double>(n), 0, stats);
  return absl::OkStatus();
}

absl::Status CombineLosses(CpuDevice&, In a, double weight_a, In b,
                           double weight_b, Tensor& stats) {
  const double* first = a.data<double>();
  const double added = b.defined() ? weight_b * b.data<double>()[0] : 0;
  SetStats(weight_a * first[0] + added, first[1], first[2], stats);
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, LossKernels& ops) {
  BindF32<SoftmaxCrossEntropy>(cpu, ops.SoftmaxCrossEntropy);
  BindF32<WeightedCrossEntropy>(cpu, ops.WeightedCrossEntropy);
  BindF32<PairLoss>(cpu, ops.PairLoss);
  ops.CombineLosses.Bind<CombineLosses>(&cpu);
}

}  // namespace troupe::nn::cpu
