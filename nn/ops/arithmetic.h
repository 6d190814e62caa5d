// Arithmetic on the elements of tensors; ops::Add is in add.h.
//
//   Tensor normal = ops::Div(ctx, ops::Sub(ctx, x, mean), deviation);
//   Tensor half = ops::Scale(ctx, x, 0.5);
//
// Functions of two operands broadcast them to one shape as NumPy does: axes are
// aligned at the last one, and an axis that is missing or has extent 1 is
// repeated. [N, T, C] and [C], [N, 1, C] or [] give [N, T, C]. Gradients are
// summed over the axes along which an operand was repeated, in an order that
// follows from the shapes. Both operands have one dtype.
//
// Domains are not checked: Log of 0 is minus infinity, Sqrt of a negative
// number NaN, as in PyTorch. Errors (sticky in ctx): kInvalidArgument with the
// shapes.

#ifndef NN_OPS_ARITHMETIC_H_
#define NN_OPS_ARITHMETIC_H_

#include "nn/autograd/context.h"
#include "nn/ops/add.h"

namespace troupe::nn::ops {

// a - b, a b, a / b
Tensor Sub(Context& ctx, const Tensor& a, const Tensor& b);
Tensor Mul(Context& ctx, const Tensor& a, const Tensor& b);
Tensor Div(Context& ctx, const Tensor& a, const Tensor& b);

Tensor Neg(Context& ctx, const Tensor& x);
Tensor Exp(Context& ctx, const Tensor& x);
Tensor Log(Context& ctx, const Tensor& x);
Tensor Sqrt(Context& ctx, const Tensor& x);

// factor x and x + value, for a constant.
Tensor Scale(Context& ctx, const Tensor& x, double factor);
Tensor AddScalar(Context& ctx, const Tensor& x, double value);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ARITHMETIC_H_
