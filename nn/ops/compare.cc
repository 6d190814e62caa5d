#include "nn/ops/compare.h"

#include "nn/kernels/strided_loops.h"
#include "nn/ops/op_util.h"
#include "nn/ops/scalar_like.h"

namespace troupe::nn::ops {
namespace {

enum class Operands { kInOrder, kExchanged };

// Returns where f(a, b), or f(b, a), holds.
Tensor Compare(Context& ctx, const char* name, BinaryFunction f,
               Operands operands, const Tensor& a, const Tensor& b) {
  if (!ctx.ok()) return Tensor();
  const std::optional<Shape> shape = BroadcastShape(a.shape(), b.shape());
  const bool defined = a.defined() && b.defined();
  const bool integers = defined && a.dtype() == DType::kI64;
  if (!defined || !shape || a.dtype() != b.dtype() ||
      (!integers && !IsFloating(a.dtype()))) {
    return BadShapes(ctx, name,
                     " takes two tensors of one dtype, floating or i64, that "
                     "broadcast to one shape, got ",
                     Str(a), " and ", Str(b));
  }
  Tensor y = ctx.Empty(name, *shape, integers ? DType::kF32 : a.dtype());
  ctx.Note(name, y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const bool exchanged = operands == Operands::kExchanged;
  const Tensor& left = exchanged ? b : a;
  const Tensor& right = exchanged ? a : b;
  const absl::Status status =
      integers ? ctx.kernels().CompareIntegers(f, left, right, y)
               : ctx.kernels().Binary(f, left, right, y);
  return status.ok() ? y : ctx.Fail(status);
}

}  // namespace

Tensor Equal(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "equal", BinaryFunction::kEqual, Operands::kInOrder, a,
                 b);
}
Tensor NotEqual(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "not_equal", BinaryFunction::kNotEqual,
                 Operands::kInOrder, a, b);
}
Tensor Less(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "less", BinaryFunction::kLess, Operands::kInOrder, a, b);
}
Tensor LessEqual(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "less_equal", BinaryFunction::kLessEqual,
                 Operands::kInOrder, a, b);
}
Tensor Greater(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "greater", BinaryFunction::kLess, Operands::kExchanged, a,
                 b);
}
Tensor GreaterEqual(Context& ctx, const Tensor& a, const Tensor& b) {
  return Compare(ctx, "greater_equal", BinaryFunction::kLessEqual,
                 Operands::kExchanged, a, b);
}

Tensor Equal(Context& ctx, const Tensor& a, double b) {
  return Equal(ctx, a, ScalarLike(ctx, "equal", a, b));
}
Tensor NotEqual(Context& ctx, const Tensor& a, double b) {
  return NotEqual(ctx, a, ScalarLike(ctx, "not_equal", a, b));
}
Tensor Less(Context& ctx, const Tensor& a, double b) {
  return Less(ctx, a, ScalarLike(ctx, "less", a, b));
}
Tensor LessEqual(Context& ctx, const Tensor& a, double b) {
  return LessEqual(ctx, a, ScalarLike(ctx, "less_equal", a, b));
}
Tensor Greater(Context& ctx, const Tensor& a, double b) {
  return Greater(ctx, a, ScalarLike(ctx, "greater", a, b));
}
Tensor GreaterEqual(Context& ctx, const Tensor& a, double b) {
  return GreaterEqual(ctx, a, ScalarLike(ctx, "greater_equal", a, b));
}

}  // namespace troupe::nn::ops
