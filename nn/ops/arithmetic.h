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
Tensor Square(Context& ctx, const Tensor& x);  // x^2
Tensor Rsqrt(Context& ctx, const Tensor& x);   // 1 / the square root of x
Tensor Abs(Context& ctx, const Tensor& x);     // its derivative at 0 is 0
Tensor Sin(Context& ctx, const Tensor& x);
Tensor Cos(Context& ctx, const Tensor& x);

// x^p. For x < 0 it is NaN unless p is an integer. x^0 is 1, a constant.
Tensor Pow(Context& ctx, const Tensor& x, double p);

// The nearest number to x in [low, high]; an infinity is no limit. The gradient
// is that of x inside, and 0 outside and at the limits (as in PyTorch 2.15).
// kInvalidArgument: low > high, or a NaN.
Tensor Clamp(Context& ctx, const Tensor& x, double low, double high);

// factor x and x + value, for a constant.
Tensor Scale(Context& ctx, const Tensor& x, double factor);
Tensor AddScalar(Context& ctx, const Tensor& x, double value);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ARITHMETIC_H_
