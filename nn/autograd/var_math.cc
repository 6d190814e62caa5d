#include "nn/autograd/var_math.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_error.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/compare.h"
#include "nn/ops/concat.h"
#include "nn/ops/cumsum.h"
#include "nn/ops/einsum.h"
#include "nn/ops/expand.h"
#include "nn/ops/extremes.h"
#include "nn/ops/flip.h"
#include "nn/ops/gather.h"
#include "nn/ops/matmul.h"
#include "nn/ops/reduce.h"
#include "nn/ops/sort.h"
#include "nn/ops/triangle.h"
#include "nn/ops/where.h"

namespace troupe::nn {
namespace {

VarExtremes Pair(Context& ctx, ops::Extremes found) {
  return {Var(ctx, std::move(found.values)),
          Var(ctx, std::move(found.indices))};
}

VarSorted Pair(Context& ctx, ops::Sorted found) {
  return {Var(ctx, std::move(found.values)),
          Var(ctx, std::move(found.indices))};
}

// Returns the context of the list's tensors; `takers` are named in errors.
Context& ContextOf(absl::Span<const Var> xs, const char* takers) {
  if (xs.empty()) {
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat(takers, " at least one tensor; give one")));
  }
  return xs[0].context();
}

std::vector<Tensor> TensorsOf(absl::Span<const Var> xs) {
  return std::vector<Tensor>(xs.begin(), xs.end());
}

// Returns op(context, tensors, axis).
template <typename Op>
Var Joined(absl::Span<const Var> xs, int axis, Op op) {
  Context& ctx = ContextOf(xs, "Cat() and Stack() take");
  return Var(ctx, op(ctx, TensorsOf(xs), axis));
}

// Returns op(context, tensor); a loss is compared by its mean.
template <typename Op>
Var Compared(const Var& a, Op op) {
  Context& ctx = a.context();
  return Var(ctx, op(ctx, a.Mean().tensor()));
}

}  // namespace

Var operator<(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::Less(ctx, x, b.Mean());
  });
}
Var operator<=(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::LessEqual(ctx, x, b.Mean());
  });
}
Var operator>(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::Greater(ctx, x, b.Mean());
  });
}
Var operator>=(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::GreaterEqual(ctx, x, b.Mean());
  });
}
Var operator==(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::Equal(ctx, x, b.Mean());
  });
}
Var operator!=(const Var& a, const Var& b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::NotEqual(ctx, x, b.Mean());
  });
}
Var operator<(const Var& a, double b) {
  return Compared(
      a, [&](Context& ctx, const Tensor& x) { return ops::Less(ctx, x, b); });
}
Var operator<=(const Var& a, double b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::LessEqual(ctx, x, b);
  });
}
Var operator>(const Var& a, double b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::Greater(ctx, x, b);
  });
}
Var operator>=(const Var& a, double b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::GreaterEqual(ctx, x, b);
  });
}
Var operator==(const Var& a, double b) {
  return Compared(
      a, [&](Context& ctx, const Tensor& x) { return ops::Equal(ctx, x, b); });
}
Var operator!=(const Var& a, double b) {
  return Compared(a, [&](Context& ctx, const Tensor& x) {
    return ops::NotEqual(ctx, x, b);
  });
}
Var operator<(double a, const Var& b) { return b > a; }
Var operator<=(double a, const Var& b) { return b >= a; }
Var operator>(double a, const Var& b) { return b < a; }
Var operator>=(double a, const Var& b) { return b <= a; }
Var operator==(double a, const Var& b) { return b == a; }
Var operator!=(double a, const Var& b) { return b != a; }

Var Where(const Var& condition, const Var& a, const Var& b) {
  Context& ctx = condition.context();
  return Var(ctx, ops::Where(ctx, condition, a.Mean(), b.Mean()));
}
Var Where(const Var& condition, double a, const Var& b) {
  Context& ctx = condition.context();
  return Var(ctx, ops::Where(ctx, condition, a, b.Mean()));
}
Var Where(const Var& condition, const Var& a, double b) {
  Context& ctx = condition.context();
  return Var(ctx, ops::Where(ctx, condition, a.Mean(), b));
}
Var MaskedFill(const Var& x, const Var& mask, double value) {
  return x.Apply(ops::MaskedFill, mask.tensor(), value);
}
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

Var Einsum(absl::string_view equation, absl::Span<const Var> operands) {
  Context& ctx = ContextOf(operands, "Einsum() takes");
  return Var(ctx, ops::Einsum(ctx, equation, TensorsOf(operands)));
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

VarSorted TopK(const Var& x, std::int64_t k, int axis, bool largest) {
  Context& ctx = x.context();
  return Pair(ctx, ops::TopK(ctx, x, k, axis, largest));
}
VarSorted Sort(const Var& x, int axis, bool descending) {
  Context& ctx = x.context();
  return Pair(ctx, ops::Sort(ctx, x, axis, descending));
}
Var Argsort(const Var& x, int axis, bool descending) {
  return x.Apply(ops::Argsort, axis, descending);
}

Var Gather(const Var& x, int axis, const Tensor& index) {
  return x.Apply(ops::Gather, axis, index);
}
Var IndexSelect(const Var& x, int axis, const Tensor& index) {
  return x.Apply(ops::IndexSelect, axis, index);
}
Var ScatterAdd(const Var& x, int axis, const Tensor& index, const Var& source) {
  return x.Apply(ops::ScatterAdd, axis, index, source.tensor());
}
Var IndexAdd(const Var& x, int axis, const Tensor& index, const Var& source) {
  return x.Apply(ops::IndexAdd, axis, index, source.tensor());
}
Var Cumsum(const Var& x, int axis) { return x.Apply(ops::Cumsum, axis); }

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
std::vector<Var> Meshgrid(absl::Span<const Var> xs,
                          ops::GridIndexing indexing) {
  Context& ctx = ContextOf(xs, "Meshgrid() takes");
  std::vector<Tensor> grids = ops::Meshgrid(ctx, TensorsOf(xs), indexing);
  if (!ctx.ok()) Var(ctx, Tensor());  // throws
  std::vector<Var> made;
  for (Tensor& grid : grids) made.emplace_back(ctx, std::move(grid));
  return made;
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
