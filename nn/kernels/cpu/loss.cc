#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/piece_rule.h"

namespace troupe::nn::cpu {
namespace {

void SetStats(double sum, double count, double hits, Tensor& stats) {
  double* s = stats.data<double>();
  s[0] = sum;
  s[1] = count;
  s[2] = hits;
}

absl::Status CheckTarget(std::int64_t row, std::int64_t target,
                         std::int64_t classes) {
  if (target >= 0 && target < classes) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("SoftmaxCrossEntropy: the target of row ", row, " is ",
                   target, ", but there are ", classes, " classes"));
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
    TROUPE_RETURN_IF_ERROR(CheckTarget(i, target[i], classes));
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

absl::Status PieceLargest(CpuDevice& cpu, In logits, const ClassPiece& piece,
                          Tensor& largest) {
  const std::int64_t columns = logits.dim(1);
  for (std::int64_t i = 0; i < logits.dim(0); ++i) {
    const float* row = logits.data<float>() + i * columns;
    largest.data<double>()[i] = piece.count > 0
                                    ? cpu.loops().largest_of(piece.count, row)
                                    : -std::numeric_limits<double>::infinity();
  }
  return absl::OkStatus();
}

// Whether the classes here show that `target` is not the first of the largest.
bool IsNotFirst(const ClassPiece& piece, const float* x, std::int64_t target,
                float largest) {
  const std::int64_t own = target - piece.first;
  if (own >= 0 && own < piece.count && x[own] != largest) return true;
  const std::int64_t before = std::min(own, piece.count);
  for (std::int64_t c = 0; c < before; ++c) {
    if (x[c] == largest) return true;
  }
  return false;
}

// Returns the weights of the classes here; null: all 1.
const float* WeightsHere(In class_weights, const ClassPiece& piece) {
  return class_weights.defined() ? class_weights.data<float>() + piece.first
                                 : nullptr;
}

absl::Status PieceSums(CpuDevice& cpu, In logits, In targets, In class_weights,
                       const CrossEntropyRule& rule, const ClassPiece& piece,
                       In largest, Tensor& sums) {
  const std::int64_t columns = logits.dim(1), n = piece.count;
  const std::int64_t* target = targets.data<std::int64_t>();
  for (std::int64_t i = 0; i < logits.dim(0); ++i) {
    double* of_row = sums.data<double>() + i * kNumPieceSums;
    std::fill_n(of_row, kNumPieceSums, 0.0);
    if (target[i] == rule.ignore_index) continue;
    TROUPE_RETURN_IF_ERROR(CheckTarget(i, target[i], piece.classes));
    const float* x = logits.data<float>() + i * columns;
    const auto m = static_cast<float>(largest.data<double>()[i]);
    const std::int64_t own = target[i] - piece.first;
    of_row[kExpSum] = cpu.loops().exp_sum(n, x, m);
    if (own >= 0 && own < n) {
      of_row[kTargetLogit] = x[own] - static_cast<double>(m);
    }
    if (rule.label_smoothing != 0) {
      of_row[kWeightedSum] =
          cpu.loops().offset_sum(n, x, m, WeightsHere(class_weights, piece));
    }
    of_row[kNotFirst] = IsNotFirst(piece, x, target[i], m);
  }
  return absl::OkStatus();
}

absl::Status PieceCrossEntropy(CpuDevice& cpu, In logits, In targets,
                               In class_weights, const CrossEntropyRule& rule,
                               const ClassPiece& piece, In largest, In sums,
                               Tensor& stats, Tensor& dlogits) {
  const std::int64_t columns = logits.dim(1), n = piece.count;
  const std::int64_t* target = targets.data<std::int64_t>();
  const float* w =
      class_weights.defined() ? class_weights.data<float>() : nullptr;
  const auto weight = [&](std::int64_t c) { return w ? double{w[c]} : 1.0; };
  const PieceRule by(rule, piece, weight);
  double loss = 0, counted = 0, hits = 0;
  float* const d = DataOrNull(dlogits);
  for (std::int64_t i = 0; i < logits.dim(0); ++i) {
    float* d_row = d ? d + i * columns : nullptr;
    if (target[i] == rule.ignore_index) {
      if (d) cpu.loops().fill(columns, 0.0f, d_row);
      continue;
    }
    TROUPE_RETURN_IF_ERROR(CheckTarget(i, target[i], piece.classes));
    const double* of_row = sums.data<double>() + i * kNumPieceSums;
    const double own = (1 - rule.label_smoothing) * weight(target[i]);
    loss += by.Loss(own, of_row);
    counted += weight(target[i]);
    if (of_row[kNotFirst] == 0) hits += weight(target[i]);
    if (!d) continue;
    cpu.loops().softmax_gradient(n, logits.data<float>() + i * columns,
                                 static_cast<float>(largest.data<double>()[i]),
                                 static_cast<float>(by.Scale(own, of_row)),
                                 static_cast<float>(by.share),
                                 WeightsHere(class_weights, piece), d_row);
    cpu.loops().fill(columns - n, 0.0f, d_row + n);
    const std::int64_t at = target[i] - piece.first;
    if (at >= 0 && at < n) d_row[at] -= static_cast<float>(own);
  }
  SetStats(loss, counted, hits, stats);
  return absl::OkStatus();
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
  BindF32<PieceLargest>(cpu, ops.PieceLargest);
  BindF32<PieceSums>(cpu, ops.PieceSums);
  BindF32<PieceCrossEntropy>(cpu, ops.PieceCrossEntropy);
  BindF32<PairLoss>(cpu, ops.PairLoss);
  ops.CombineLosses.Bind<CombineLosses>(&cpu);
}

}  // namespace troupe::nn::cpu
