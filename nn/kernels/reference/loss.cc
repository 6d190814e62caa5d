#include <algorithm>
#include <cmath>

#include "nn/kernels/reference/element.h"
#include "nn/kernels/reference/reference_impl.h"

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

}  // namespace

absl::Status ReferenceKernels::SoftmaxCrossEntropy(const Tensor& logits_NC,
                                                   const Tensor& targets_N,
                                                   std::int64_t ignore_index,
                                                   Tensor& stats,
                                                   Tensor& dlogits_NC) {
  const std::int64_t N = logits_NC.dim(0), C = logits_NC.dim(1);
  TROUPE_RETURN_IF_ERROR(CheckTargets(targets_N, C, ignore_index));
  const std::int64_t* target = targets_N.data<std::int64_t>();
  double* counts = stats.data<double>();
  std::fill_n(counts, 3, 0.0);
  return ForFloating("SoftmaxCrossEntropy", logits_NC.dtype(), [&](auto e) {
    using T = decltype(e);
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
  });
}

absl::Status ReferenceKernels::MeanSquaredError(const Tensor& prediction,
                                                const Tensor& target,
                                                Tensor& stats,
                                                Tensor& dprediction) {
  double* counts = stats.data<double>();
  std::fill_n(counts, 3, 0.0);
  counts[1] = static_cast<double>(prediction.numel());
  return ForFloating("MeanSquaredError", prediction.dtype(), [&](auto e) {
    using T = decltype(e);
    const T* p = prediction.data<T>();
    const T* t = target.data<T>();
    T* dp = dprediction.defined() ? dprediction.data<T>() : nullptr;
    for (std::int64_t i = 0; i < prediction.numel(); ++i) {
      const double error = Load(p[i]) - Load(t[i]);
      counts[0] += error * error;
      if (dp) dp[i] = Store<T>(2 * error);
    }
  });
}

absl::Status ReferenceKernels::CombineLosses(const Tensor& a, double weight_a,
                                             const Tensor& b, double weight_b,
                                             Tensor& stats) {
  const double* first = a.data<double>();
  double sum = weight_a * first[0];
  if (b.defined()) sum += weight_b * b.data<double>()[0];
  double* out = stats.data<double>();
  out[1] = first[1];
  out[2] = first[2];
  out[0] = sum;
  return absl::OkStatus();
}

}  // namespace troupe::nn::reference
