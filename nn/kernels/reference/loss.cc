#include <algorithm>
#include <cmath>

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

// The first of the largest logits; a NaN counts as larger than all.
template <typename T>
std::int64_t ArgMax(const T* row, std::int64_t classes) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < classes; ++c) {
    if (std::isnan(Load(row[best]))) break;
    if (!(Load(row[c]) <= Load(row[best]))) best = c;
  }
  return best;
}

// One counted row: adds to `stats`, writes `drow` unless it is null.
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
  static absl::Status Run(In logits_NC, In targets_N, std::int64_t ignore_index,
                          Tensor& stats, Tensor& dlogits_NC) {
    const std::int64_t N = logits_NC.dim(0), C = logits_NC.dim(1);
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

struct MeanSquaredError {
  template <typename T>
  static absl::Status Run(In prediction, In target, Tensor& stats,
                          Tensor& dprediction) {
    double* counts = stats.data<double>();
    std::fill_n(counts, 3, 0.0);
    counts[1] = static_cast<double>(prediction.numel());
    const T* p = prediction.data<T>();
    const T* t = target.data<T>();
    T* dp = dprediction.defined() ? dprediction.data<T>() : nullptr;
    for (std::int64_t i = 0; i < prediction.numel(); ++i) {
      const double error = Load(p[i]) - Load(t[i]);
      counts[0] += error * error;
      if (dp) dp[i] = Store<T>(2 * error);
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

void BindLoss(LossKernels& ops) {
  BindFloating<SoftmaxCrossEntropy>(ops.SoftmaxCrossEntropy);
  BindFloating<MeanSquaredError>(ops.MeanSquaredError);
  ops.CombineLosses.BindFunction(CombineLosses, nullptr);
}

}  // namespace troupe::nn::reference
