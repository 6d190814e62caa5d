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

absl::Status SoftmaxCrossEntropy(CpuDevice& cpu, In logits, In targets,
                                 std::int64_t ignore_index, Tensor& stats,
                                 Tensor& dlogits) {
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  const float* x = logits.data<float>();
  const std::int64_t* target = targets.data<std::int64_t>();
  float* d = DataOrNull(dlogits);
  double sum = 0;
  std::int64_t counted = 0, hits = 0;
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
    sum += cpu.loops().cross_entropy_row(classes, x + i * classes, target[i],
                                         d_row, &hit);
    ++counted;
    hits += hit;
  }
  SetStats(sum, counted, hits, stats);
  return absl::OkStatus();
}

absl::Status MeanSquaredError(CpuDevice& cpu, In prediction, In target,
                              Tensor& stats, Tensor& dprediction) {
  const std::int64_t n = prediction.numel();
  const double sum =
      cpu.loops().squared_error(n, prediction.data<float>(),
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

void BindLoss(CpuDevice& cpu, LossKernels& ops) {
  BindF32<SoftmaxCrossEntropy>(cpu, ops.SoftmaxCrossEntropy);
  BindF32<MeanSquaredError>(cpu, ops.MeanSquaredError);
  ops.CombineLosses.Bind<CombineLosses>(&cpu);
}

}  // namespace troupe::nn::cpu
