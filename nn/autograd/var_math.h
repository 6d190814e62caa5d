// Functions of Vars: arithmetic, comparisons, reductions, orders, indices,
// shapes, losses. Names and meanings are those of the ops of nn/ops, which they
// call, and of PyTorch.
//
//   Var norm = Rsqrt(Sum(Square(x), {-1}, /*keep_dims=*/true) + 1e-6);
//   Var features = Cat({x * norm, Sin(x), Cos(x)}, /*axis=*/-1);
//   auto [best, at] = Max(features, /*axis=*/-1);
//   Var kept = Where(features > 0, features, 0);
//   Var rows = IndexSelect(kept, /*axis=*/0, TopK(best, 5).indices);
//   Var scores = Einsum("qd,kd->qk", {rows, rows});
//   Var loss = CrossEntropy(model(features), labels);
//
// Found by their argument: no namespace is needed. Negative axes count from the
// end; an empty set of axes means all.
//
// Errors: base::StatusError, with the shapes (var.h).

#ifndef NN_AUTOGRAD_VAR_MATH_H_
#define NN_AUTOGRAD_VAR_MATH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/autograd/var.h"
#include "nn/ops/expand.h"
#include "nn/ops/loss.h"

namespace troupe::nn {

// Element by element (nn/ops/arithmetic.h).
Var Exp(const Var& x);
Var Log(const Var& x);
Var Sqrt(const Var& x);
Var Rsqrt(const Var& x);
Var Square(const Var& x);
Var Pow(const Var& x, double p);
Var Abs(const Var& x);
Var Sin(const Var& x);
Var Cos(const Var& x);
Var Clamp(const Var& x, double low,
          double high = std::numeric_limits<double>::infinity());

// Masks: 1 where a comparison holds, else 0; constants (nn/ops/compare.h).
Var operator<(const Var& a, const Var& b);
Var operator<=(const Var& a, const Var& b);
Var operator>(const Var& a, const Var& b);
Var operator>=(const Var& a, const Var& b);
Var operator==(const Var& a, const Var& b);
Var operator!=(const Var& a, const Var& b);
Var operator<(const Var& a, double b);
Var operator<=(const Var& a, double b);
Var operator>(const Var& a, double b);
Var operator>=(const Var& a, double b);
Var operator==(const Var& a, double b);
Var operator!=(const Var& a, double b);
Var operator<(double a, const Var& b);
Var operator<=(double a, const Var& b);
Var operator>(double a, const Var& b);
Var operator>=(double a, const Var& b);
Var operator==(double a, const Var& b);
Var operator!=(double a, const Var& b);

// Choices by a mask (nn/ops/where.h).
Var Where(const Var& condition, const Var& a, const Var& b);
Var Where(const Var& condition, double a, const Var& b);
Var Where(const Var& condition, const Var& a, double b);
Var MaskedFill(const Var& x, const Var& mask, double value);

// Products of matrices, batched (nn/ops/matmul.h), and of axes by their names
// (nn/ops/einsum.h).
Var MatMul(const Var& a, const Var& b);
Var Einsum(absl::string_view equation, absl::Span<const Var> operands);

// Reductions (nn/ops/reduce.h, nn/ops/extremes.h).
Var Sum(const Var& x, absl::Span<const int> axes = {}, bool keep_dims = false);
Var Mean(const Var& x, absl::Span<const int> axes = {}, bool keep_dims = false);
Var Variance(const Var& x, absl::Span<const int> axes = {}, int correction = 1,
             bool keep_dims = false);
struct VarExtremes {
  Var values;
  Var indices;  // i64
};
VarExtremes Max(const Var& x, int axis, bool keep_dims = false);
VarExtremes Min(const Var& x, int axis, bool keep_dims = false);
Var Argmax(const Var& x, int axis = -1, bool keep_dims = false);
Var Argmin(const Var& x, int axis = -1, bool keep_dims = false);
Var Amax(const Var& x, absl::Span<const int> axes = {}, bool keep_dims = false);
Var Amin(const Var& x, absl::Span<const int> axes = {}, bool keep_dims = false);

// Orders (nn/ops/sort.h).
struct VarSorted {
  Var values;
  Var indices;  // i64
};
VarSorted TopK(const Var& x, std::int64_t k, int axis = -1,
               bool largest = true);
VarSorted Sort(const Var& x, int axis = -1, bool descending = false);
Var Argsort(const Var& x, int axis = -1, bool descending = false);

// Elements by their indices, i64, and cumulative sums (nn/ops/gather.h,
// cumsum.h).
Var Gather(const Var& x, int axis, const Tensor& index);
Var IndexSelect(const Var& x, int axis, const Tensor& index);
Var ScatterAdd(const Var& x, int axis, const Tensor& index, const Var& source);
Var IndexAdd(const Var& x, int axis, const Tensor& index, const Var& source);
Var Cumsum(const Var& x, int axis);

// Shapes (nn/ops/concat.h, expand.h, flip.h, triangle.h).
Var Cat(absl::Span<const Var> xs, int axis);
Var Stack(absl::Span<const Var> xs, int axis);
Var Expand(const Var& x, const Shape& shape);
Var Repeat(const Var& x, absl::Span<const std::int64_t> counts);
std::vector<Var> Meshgrid(absl::Span<const Var> xs,
                          ops::GridIndexing indexing = ops::GridIndexing::kIJ);
Var Flip(const Var& x, absl::Span<const int> axes);
Var Roll(const Var& x, std::int64_t shift, int axis);
Var Tril(const Var& x, int diagonal = 0);
Var Triu(const Var& x, int diagonal = 0);

// Losses (nn/ops/loss.h). Cross entropy writes the gradient over logits that no
// other handle holds, as in CrossEntropy(model(x), labels).
Var CrossEntropy(Var logits, const Tensor& targets,
                 const ops::CrossEntropyOptions& options = {});
Var MeanSquaredError(const Var& prediction, const Var& target);
Var L1Loss(const Var& prediction, const Var& target);
Var HuberLoss(const Var& prediction, const Var& target, double delta = 1);
Var BceWithLogits(const Var& logits, const Var& target, double pos_weight = 1);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_VAR_MATH_H_
