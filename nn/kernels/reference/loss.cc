#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/kernels/piece_rule.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

absl::Status CheckTargets(const Tensor& targets, std::int64_t classes,
                          std::int64_t ignore_index) {
  const std::int64_t* target = targets.data<std::int64_t>();
  for (std::int64_t n = 0; n < targets.numel(); ++n) {
    if (target[n] == ignore_index) continue;
    if (target[n] < 0 || target[n] >= classes) {
      return absl::OutOfRangeError(
          absl::StrCat("SoftmaxCrossEntropy: row ", n, " has target ",
                       target[n], ", but there are ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

// Returns the first of the largest logits; a NaN counts as larger than all.
template <typename T>
std::int64_t ArgMax(const T* row, std::int64_t classes) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < classes; ++c) {
    if (std::isnan(Load(row[best]))) break;
    if (!(Load(row[c]) <= Load(row[best]))) best = c;
  }
  return best;
}

// Computes one counted row: adds to `stats`, writes `drow` unless it is null.
template <typename T>
void CrossEntropyRow(const T* row, std::int64_t classes, std::int64_t target,
                     double* stats, T* drow) {
  const std::int64_t winner = ArgMax(row, classes);
  const double largest = Load(row[winner]);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    sum += std::exp(Load(row[c]) - largest);
  }
  stats[0] += std::log(sum) - (Load(row[target]) - largest);
  stats[1] += 1;
  stats[2] += winner == target ? 1 : 0;
  if (!drow) return;
  for (std::int64_t c = 0; c < classes; ++c) {
    const double softmax = std::exp(Load(row[c]) - largest) / sum;
    drow[c] = Store<T>(softmax - (c == target ? 1 : 0));
  }
}

struct SoftmaxCrossEntropy {
  template <typename T>
  static absl::Status Run(In logits_NC, In targets_N,
                          const CrossEntropyRule& rule, Tensor& stats,
                          Tensor& dlogits_NC) {
    const std::int64_t N = logits_NC.dim(0), C = logits_NC.dim(1);
    const std::int64_t ignore_index = rule.ignore_index;
    TROUPE_RETURN_IF_ERROR(CheckTargets(targets_N, C, ignore_index));
    const std::int64_t* target = targets_N.data<std::int64_t>();
    double* counts = stats.data<double>();
    std::fill_n(counts, 3, 0.0);
    const T* logits = logits_NC.data<T>();
    T* dlogits = dlogits_NC.defined() ? dlogits_NC.data<T>() : nullptr;
    for (std::int64_t n = 0; n < N; ++n) {
      T* drow = dlogits ? dlogits + n * C : nullptr;
      if (target[n] != ignore_index) {
        CrossEntropyRow(logits + n * C, C, target[n], counts, drow);
      } else if (drow) {
        std::fill_n(drow, C, T{});
      }
    }
    return absl::OkStatus();
  }
};

// Computes one counted row with class weights (null: all 1) and smoothing.
template <typename T>
void WeightedRow(const T* row, std::int64_t classes, std::int64_t target,
                 const double* weights, double smoothing, double* stats,
                 T* drow) {
  const auto weight = [&](std::int64_t c) {
    return weights ? weights[c] : 1.0;
  };
  const std::int64_t winner = ArgMax(row, classes);
  const double largest = Load(row[winner]);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    sum += std::exp(Load(row[c]) - largest);
  }
  const double own = (1 - smoothing) * weight(target);
  const double share = smoothing / static_cast<double>(classes);
  const auto log_softmax = [&](std::int64_t c) {
    return Load(row[c]) - largest - std::log(sum);
  };
  stats[0] -= own * log_softmax(target);
  stats[1] += weight(target);
  stats[2] += winner == target ? weight(target) : 0;
  double all = own;
  for (std::int64_t c = 0; share != 0 && c < classes; ++c) {
    stats[0] -= share * weight(c) * log_softmax(c);
    all += share * weight(c);
  }
  for (std::int64_t c = 0; drow && c < classes; ++c) {
    const double softmax = std::exp(Load(row[c]) - largest) / sum;
    drow[c] =
        Store<T>(all * softmax - share * weight(c) - (c == target ? own : 0));
  }
}

// Returns the elements of `t`, f32 or f64; none if it is undefined.
std::vector<double> AsF64(const Tensor& t) {
  if (!t.defined()) return {};
  if (t.dtype() == DType::kF64) {
    return {t.data<double>(), t.data<double>() + t.numel()};
  }
  return {t.data<float>(), t.data<float>() + t.numel()};
}

struct WeightedCrossEntropy {
  template <typename T>
  static absl::Status Run(In logits_NC, In targets_N, FixedIn class_weights_C,
                          const CrossEntropyRule& rule, Tensor& stats,
                          Tensor& dlogits_NC) {
    const std::int64_t N = logits_NC.dim(0), C = logits_NC.dim(1);
    TROUPE_RETURN_IF_ERROR(CheckTargets(targets_N, C, rule.ignore_index));
    const std::int64_t* target = targets_N.data<std::int64_t>();
    const std::vector<double> weights = AsF64(class_weights_C);
    double* counts = stats.data<double>();
    std::fill_n(counts, 3, 0.0);
    const T* logits = logits_NC.data<T>();
    T* dlogits = dlogits_NC.defined() ? dlogits_NC.data<T>() : nullptr;
    for (std::int64_t n = 0; n < N; ++n) {
      T* drow = dlogits ? dlogits + n * C : nullptr;
      if (target[n] != rule.ignore_index) {
        WeightedRow(logits + n * C, C, target[n],
                    weights.empty() ? nullptr : weights.data(),
                    rule.label_smoothing, counts, drow);
      } else if (drow) {
        std::fill_n(drow, C, T{});
      }
    }
    return absl::OkStatus();
  }
};

struct PieceLargest {
  template <typename T>
  static absl::Status Run(In logits_NP, const ClassPiece& piece,
                          Tensor& largest_N) {
    for (std::int64_t n = 0; n < logits_NP.dim(0); ++n) {
      const T* row = logits_NP.data<T>() + n * logits_NP.dim(1);
      largest_N.data<double>()[n] =
          piece.count > 0 ? Load(row[ArgMax(row, piece.count)]) : -INFINITY;
    }
    return absl::OkStatus();
  }
};

struct PieceSums {
  template <typename T>
  static absl::Status Run(In logits_NP, In targets_N, FixedIn class_weights_C,
                          const CrossEntropyRule& rule, const ClassPiece& piece,
                          FixedIn largest_N, Tensor& sums_N4) {
    TROUPE_RETURN_IF_ERROR(
        CheckTargets(targets_N, piece.classes, rule.ignore_index));
    const std::vector<double> weights = AsF64(class_weights_C);
    double* const all = sums_N4.data<double>();
    std::fill_n(all, sums_N4.numel(), 0.0);
    for (std::int64_t n = 0; n < logits_NP.dim(0); ++n) {
      const std::int64_t target = targets_N.data<std::int64_t>()[n];
      if (target == rule.ignore_index) continue;
      const T* row = logits_NP.data<T>() + n * logits_NP.dim(1);
      const double m = largest_N.tensor.data<double>()[n];
      double* const sums = all + n * kNumPieceSums;
      bool is_not_first = false;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::int64_t c = piece.first + i;
        const double above = Load(row[i]) - m;
        sums[kExpSum] += std::exp(above);
        if (rule.label_smoothing != 0) {
          sums[kWeightedSum] += (weights.empty() ? 1 : weights[c]) * above;
        }
        if (c == target) sums[kTargetLogit] = above;
        is_not_first |= c < target && above == 0;
        is_not_first |= c == target && above != 0;
      }
      sums[kNotFirst] = is_not_first;
    }
    return absl::OkStatus();
  }
};

struct PieceCrossEntropy {
  template <typename T>
  static absl::Status Run(In logits_NP, In targets_N, FixedIn class_weights_C,
                          const CrossEntropyRule& rule, const ClassPiece& piece,
                          FixedIn largest_N, FixedIn sums_N4, Tensor& stats,
                          Tensor& dlogits_NP) {
    TROUPE_RETURN_IF_ERROR(
        CheckTargets(targets_N, piece.classes, rule.ignore_index));
    const std::int64_t P = logits_NP.dim(1);
    const std::vector<double> weights = AsF64(class_weights_C);
    const auto weight = [&](std::int64_t c) {
      return weights.empty() ? 1.0 : weights[c];
    };
    const PieceRule by(rule, piece, weight);
    double* const counts = stats.data<double>();
    std::fill_n(counts, 3, 0.0);
    T* const d = dlogits_NP.defined() ? dlogits_NP.data<T>() : nullptr;
    for (std::int64_t n = 0; n < logits_NP.dim(0); ++n) {
      const std::int64_t target = targets_N.data<std::int64_t>()[n];
      const bool counts_row = target != rule.ignore_index;
      const double* const sums =
          sums_N4.tensor.data<double>() + n * kNumPieceSums;
      const double own =
          counts_row ? (1 - rule.label_smoothing) * weight(target) : 0;
      if (counts_row) {
        counts[0] += by.Loss(own, sums);
        counts[1] += weight(target);
        counts[2] += sums[kNotFirst] == 0 ? weight(target) : 0;
      }
      const double m = largest_N.tensor.data<double>()[n];
      for (std::int64_t i = 0; d && i < P; ++i) {
        const std::int64_t c = piece.first + i;
        double value = 0;
        if (counts_row && i < piece.count) {
          value = std::exp(Load(logits_NP.data<T>()[n * P + i]) - m) *
                      by.Scale(own, sums) -
                  by.share * weight(c) - (c == target ? own : 0);
        }
        d[n * P + i] = Store<T>(value);
      }
    }
    return absl::OkStatus();
  }
};

// The loss of a pair of elements, and its derivative by the prediction.
struct LossOfPair {
  double value, derivative;
};

LossOfPair Huber(double e, double delta, double scale) {
  const double size = std::abs(e);
  if (size <= delta) return {scale * e * e / 2, scale * e};
  return {scale * delta * (size - delta / 2),
          scale * std::copysign(delta, e) + 0 * e};
}

LossOfPair BceWithLogits(double x, double t, double pos_weight) {
  const double weight = 1 + (pos_weight - 1) * t;
  const double decay = std::exp(-std::abs(x));
  const double softplus = (x < 0 ? -x : 0) + std::log1p(decay);
  const double sigmoid = (x < 0 ? 1 : decay) / (1 + decay);  // sigmoid(-x)
  return {(1 - t) * x + weight * softplus, (1 - t) - weight * sigmoid};
}

LossOfPair LossAt(const PairLossRule& rule, double x, double t) {
  const double e = x - t;
  switch (rule.function) {
    case PairLossFunction::kSquaredError:
      return {e * e, 2 * e};
    case PairLossFunction::kAbsoluteError:
      return {std::abs(e), e > 0 ? 1 : e < 0 ? -1 : 0 * e};
    case PairLossFunction::kHuber:
      return Huber(e, /*delta=*/rule.p, /*scale=*/rule.q);
    case PairLossFunction::kBceWithLogits:
      return BceWithLogits(x, t, /*pos_weight=*/rule.p);
  }
  return {std::nan(""), std::nan("")};
}

struct PairLoss {
  template <typename T>
  static absl::Status Run(const PairLossRule& rule, In prediction, In target,
                          Tensor& stats, Tensor& dprediction) {
    double* counts = stats.data<double>();
    std::fill_n(counts, 3, 0.0);
    counts[1] = static_cast<double>(prediction.numel());
    const T* x = prediction.data<T>();
    const T* t = target.data<T>();
    T* dx = dprediction.defined() ? dprediction.data<T>() : nullptr;
    for (std::int64_t i = 0; i < prediction.numel(); ++i) {
      const LossOfPair one = LossAt(rule, Load(x[i]), Load(t[i]));
      counts[0] += one.value;
      if (dx) dx[i] = Store<T>(one.derivative);
    }
    return absl::OkStatus();
  }
};

template <typename ThisOp>
absl::Status CombineLosses(const ThisOp&, FixedIn a, double weight_a, FixedIn b,
                           double weight_b, FixedOut stats) {
  const double* first = a.tensor.data<double>();
  double sum = weight_a * first[0];
  if (b.tensor.defined()) sum += weight_b * b.tensor.data<double>()[0];
  double* out = stats.tensor.data<double>();
  out[1] = first[1];
  out[2] = first[2];
  out[0] = sum;
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(LossKernels& ops) {
  BindFloating<SoftmaxCrossEntropy>(ops.SoftmaxCrossEntropy);
  BindFloating<WeightedCrossEntropy>(ops.WeightedCrossEntropy);
  BindFloating<PieceLargest>(ops.PieceLargest);
  BindFloating<PieceSums>(ops.PieceSums);
  BindFloating<PieceCrossEntropy>(ops.PieceCrossEntropy);
  BindFloating<PairLoss>(ops.PairLoss);
  ops.CombineLosses.BindFunction(CombineLosses, nullptr);
}

}  // namespace troupe::nn::reference
