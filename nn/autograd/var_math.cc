#include "nn/autograd/var_math.h"

#include <utility>
#include <vector>

#include "base/status_error.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/concat.h"
#include "nn/ops/expand.h"
#include "nn/ops/extremes.h"
#include "nn/ops/flip.h"
#include "nn/ops/matmul.h"
#include "nn/ops/reduce.h"
#include "nn/ops/triangle.h"

namespace troupe::nn {
namespace {

VarExtremes Pair(Context& ctx, ops::Extremes found) {
  return {Var(ctx, std::move(found.values)),
          Var(ctx, std::move(found.indices))};
}

// Returns op(context, tensors, axis).
template <typename Op>
Var Joined(absl::Span<const Var> xs, int axis, Op op) {
  if (xs.empty()) {
    throw base::StatusError(absl::InvalidArgumentError(
        "Cat() and Stack() take at least one tensor"));
  }
  Context& ctx = xs[0].context();
  const std::vector<Tensor> tensors(xs.begin(), xs.end());
  return Var(ctx, op(ctx, tensors, axis));
}

}  // namespace

Var Exp(const Var& x) { return x.Mean().Apply(ops::Exp); }
Var Log(const Var& x) { return x.Mean().Apply(ops::Log); }
Var Sqrt(const Var& x) { return x.Mean().Apply(ops::Sqrt); }
Var Rsqrt(const Var& x) { return x.Mean().Apply(ops::Rsqrt); }
Var Square(const Var& x) { return x.Mean().Apply(ops::Square); }
Var Pow(const Var& x, double p) { return x.Mean().Apply(ops::Pow, p); }
Var Abs(const Var& x) { return x.Mean().Apply(ops::Abs); }
Var Sin(const Var& x) { return x.Mean().Apply(ops::Sin); }
Var Cos(const Var& x) { return x.Mean().Apply(ops::Cos); }
Var Clamp(const Var& x, double low, double high) {
  return x.Mean().Apply(ops::Clamp, low, high);
}

Var MatMul(const Var& a, const Var& b) {
  return a.Apply(ops::MatMul, b.tensor(), MatMulForm{});
}

Var Sum(const Var& x, absl::Span<const int> axes, bool keep_dims) {
  return x.Mean().Apply(ops::Sum, axes, keep_dims);
}
Var Mean(const Var& x, absl::Span<const int> axes, bool keep_dims) {
  return x.Mean().Apply(ops::Mean, axes, keep_dims);
}
Var Variance(const Var& x, absl::Span<const int> axes, int correction,
             bool keep_dims) {
  return x.Apply(ops::Variance, axes, correction, keep_dims);
}

VarExtremes Max(const Var& x, int axis, bool keep_dims) {
  Context& ctx = x.context();
  return Pair(ctx, ops::Max(ctx, x, axis, keep_dims));
}
VarExtremes Min(const Var& x, int axis, bool keep_dims) {
  Context& ctx = x.context();
  return Pair(ctx, ops::Min(ctx, x, axis, keep_dims));
}
Var Argmax(const Var& x, int axis, bool keep_dims) {
  return x.Apply(ops::Argmax, axis, keep_dims);
}
Var Argmin(const Var& x, int axis, bool keep_dims) {
  return x.Apply(ops::Argmin, axis, keep_dims);
}
Var Amax(const Var& x, absl::Span<const int> axes, bool keep_dims) {
  return x.Apply(ops::Amax, axes, keep_dims);
}
Var Amin(const Var& x, absl::Span<const int> axes, bool keep_dims) {
  return x.Apply(ops::Amin, axes, keep_dims);
}

Var Cat(absl::Span<const Var> xs, int axis) {
  return Joined(xs, axis, ops::Concat);
}
Var Stack(absl::Span<const Var> xs, int axis) {
  return Joined(xs, axis, ops::Stack);
}
Var Expand(const Var& x, const Shape& shape) {
  return x.Apply(ops::Expand, shape);
}
Var Repeat(const Var& x, absl::Span<const std::int64_t> counts) {
  return x.Apply(ops::Repeat, counts);
}
Var Flip(const Var& x, absl::Span<const int> axes) {
  return x.Apply(ops::Flip, axes);
}
Var Roll(const Var& x, std::int64_t shift, int axis) {
  return x.Apply(ops::Roll, shift, axis);
}
Var Tril(const Var& x, int diagonal) { return x.Apply(ops::Tril, diagonal); }
Var Triu(const Var& x, int diagonal) { return x.Apply(ops::Triu, diagonal); }

Var CrossEntropy(Var logits, const Tensor& targets,
                 const ops::CrossEntropyOptions& options) {
  Context& ctx = logits.context();
  const DType dtype = logits.dtype();
  return Var::Loss(ctx,
                   ops::SoftmaxCrossEntropy(ctx, std::move(logits).Release(),
                                            targets, options),
                   dtype);
}
Var MeanSquaredError(const Var& prediction, const Var& target) {
  Context& ctx = prediction.context();
  return Var::Loss(ctx, ops::MeanSquaredError(ctx, prediction, target),
                   prediction.dtype());
}
Var L1Loss(const Var& prediction, const Var& target) {
  Context& ctx = prediction.context();
  return Var::Loss(ctx, ops::L1Loss(ctx, prediction, target),
                   prediction.dtype());
}
Var HuberLoss(const Var& prediction, const Var& target, double delta) {
  Context& ctx = prediction.context();
  return Var::Loss(ctx, ops::HuberLoss(ctx, prediction, target, delta),
                   prediction.dtype());
}
Var BceWithLogits(const Var& logits, const Var& target, double pos_weight) {
  Context& ctx = logits.context();
  return Var::Loss(ctx, ops::BceWithLogits(ctx, logits, target, pos_weight),
                   logits.dtype());
}

}  // namespace troupe::nn
