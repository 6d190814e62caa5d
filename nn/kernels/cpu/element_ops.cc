#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/convert.h"
#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn::cpu {
namespace {

void SetStats(double sum, double count, double hits, Tensor& stats) {
  double* s = stats.data<double>();
  s[0] = sum;
  s[1] = count;
  s[2] = hits;
}

SgdScalars ScalarsOf(const SgdStep& step) {
  SgdScalars s;
  s.lr = static_cast<float>(step.lr);
  s.momentum = static_cast<float>(step.momentum);
  s.undampened = static_cast<float>(1.0 - step.dampening);
  s.weight_decay = static_cast<float>(step.weight_decay);
  s.inverse_divisor = static_cast<float>(step.InverseDivisor());
  s.nesterov = step.nesterov;
  s.first_step = step.first_step;
  return s;
}

}  // namespace

absl::Status CpuKernelSet::ReluForward(const Tensor& x, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(ReluForward(wide.In(x), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("ReluForward", x);
  loops_.relu_forward(x.numel(), x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::ReluBackward(const Tensor& y, const Tensor& dy,
                                        Tensor& dx) {
  if (IsNarrow(y)) {
    Widened wide(*this, allocator_);
    Tensor wide_dx = wide.Out(dx);
    return wide.Finish(ReluBackward(wide.In(y), wide.In(dy), wide_dx));
  }
  if (y.dtype() != DType::kF32) return Unsupported("ReluBackward", y);
  loops_.relu_backward(y.numel(), y.data<float>(), dy.data<float>(),
                       dx.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::SoftmaxCrossEntropy(const Tensor& logits,
                                               const Tensor& targets,
                                               std::int64_t ignore_index,
                                               Tensor& stats, Tensor& dlogits) {
  if (IsNarrow(logits)) {
    Widened wide(*this, allocator_);
    Tensor wide_d = wide.Out(dlogits);
    return wide.Finish(SoftmaxCrossEntropy(wide.In(logits), targets,
                                           ignore_index, stats, wide_d));
  }
  if (logits.dtype() != DType::kF32) {
    return Unsupported("SoftmaxCrossEntropy", logits);
  }
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  const float* x = logits.data<float>();
  const std::int64_t* target = targets.data<std::int64_t>();
  float* d = dlogits.defined() ? dlogits.data<float>() : nullptr;
  double sum = 0;
  std::int64_t counted = 0, hits = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    float* d_row = d ? d + i * classes : nullptr;
    if (target[i] == ignore_index) {
      if (d) loops_.fill(classes, 0.0f, d_row);
      continue;
    }
    if (target[i] < 0 || target[i] >= classes) {
      return absl::OutOfRangeError(
          absl::StrCat("SoftmaxCrossEntropy: the target of row ", i, " is ",
                       target[i], ", but there are ", classes, " classes"));
    }
    bool hit = false;
    sum += loops_.cross_entropy_row(classes, x + i * classes, target[i], d_row,
                                    &hit);
    ++counted;
    hits += hit;
  }
  SetStats(sum, counted, hits, stats);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::MeanSquaredError(const Tensor& prediction,
                                            const Tensor& target, Tensor& stats,
                                            Tensor& dprediction) {
  if (IsNarrow(prediction)) {
    Widened wide(*this, allocator_);
    Tensor wide_d = wide.Out(dprediction);
    return wide.Finish(
        MeanSquaredError(wide.In(prediction), wide.In(target), stats, wide_d));
  }
  if (prediction.dtype() != DType::kF32) {
    return Unsupported("MeanSquaredError", prediction);
  }
  const std::int64_t n = prediction.numel();
  const double sum = loops_.squared_error(
      n, prediction.data<float>(), target.data<float>(),
      dprediction.defined() ? dprediction.data<float>() : nullptr);
  SetStats(sum, static_cast<double>(n), 0, stats);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::CombineLosses(const Tensor& a, double weight_a,
                                         const Tensor& b, double weight_b,
                                         Tensor& stats) {
  const double* first = a.data<double>();
  const double added = b.defined() ? weight_b * b.data<double>()[0] : 0;
  SetStats(weight_a * first[0] + added, first[1], first[2], stats);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::CountNonFinite(const Tensor& x, Tensor& count) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    return wide.Finish(CountNonFinite(wide.In(x), count));
  }
  if (x.dtype() != DType::kF32) return Unsupported("CountNonFinite", x);
  const auto* bits = static_cast<const std::uint32_t*>(x.raw());
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    found += (bits[i] & kExponent) == kExponent;
  }
  count.data<double>()[0] += static_cast<double>(found);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Scale(const Tensor& x, const Tensor& factor,
                                 Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(Scale(wide.In(x), factor, wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("Scale", x);
  loops_.scale(x.numel(), static_cast<float>(factor.data<double>()[0]),
               x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Add(const Tensor& a, const Tensor& b, Tensor& y) {
  if (IsNarrow(a)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(Add(wide.In(a), wide.In(b), wide_y));
  }
  if (a.dtype() == DType::kF64) {  // gradients of a loss that is used twice
    const double *first = a.data<double>(), *second = b.data<double>();
    double* sum = y.data<double>();
    for (std::int64_t i = 0; i < a.numel(); ++i) sum[i] = first[i] + second[i];
    return absl::OkStatus();
  }
  if (a.dtype() != DType::kF32) return Unsupported("Add", a);
  loops_.add(a.numel(), a.data<float>(), b.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Fill(double value, Tensor& y) {
  if (y.dtype() == DType::kF32) {
    loops_.fill(y.numel(), static_cast<float>(value), y.data<float>());
    return absl::OkStatus();
  }
  if (!FillAny(value, y)) return Unsupported("Fill", y);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Copy(const Tensor& x, Tensor& y) {
  if (!ConvertAny(loops_, x, y))
    return Unsupported("Copy", IsFloating(x.dtype()) ? y : x);
  return absl::OkStatus();
}

absl::Status CpuKernelSet::SgdUpdate(const SgdStep& step, const Tensor& grad,
                                     Tensor& param, Tensor& momentum) {
  if (IsNarrow(param) || IsNarrow(grad)) {
    Widened wide(*this, allocator_);
    Tensor wide_param = wide.Out(param, /*read=*/true);
    Tensor wide_momentum = wide.Out(momentum, /*read=*/!step.first_step);
    return wide.Finish(
        SgdUpdate(step, wide.In(grad), wide_param, wide_momentum));
  }
  if (param.dtype() != DType::kF32) return Unsupported("SgdUpdate", param);
  const bool has_momentum = step.momentum != 0 && momentum.defined();
  loops_.sgd(param.numel(), ScalarsOf(step), grad.data<float>(),
             param.data<float>(),
             has_momentum ? momentum.data<float>() : nullptr);
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu
