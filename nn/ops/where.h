// Elements of one tensor where a condition holds, and of another elsewhere.
//
//   Tensor y = ops::Where(ctx, ops::Less(ctx, x, 0.0), small, large);
//   Tensor s = ops::MaskedFill(ctx, scores, mask, -kInfinity);
//
// A condition has any floating dtype, such as that of a mask of compare.h; it
// holds where it is not 0, and is a constant. The other operands have one
// dtype, any but u8, and all three are broadcast to one shape as in
// arithmetic.h. The gradient of an operand is that of y where it was taken, and
// 0 elsewhere, even if the elements there are infinite or NaN.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_WHERE_H_
#define NN_OPS_WHERE_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// condition != 0 ? a : b
Tensor Where(Context& ctx, const Tensor& condition, const Tensor& a,
             const Tensor& b);
Tensor Where(Context& ctx, const Tensor& condition, double a, const Tensor& b);
Tensor Where(Context& ctx, const Tensor& condition, const Tensor& a, double b);

// `value` where the mask is not 0, x elsewhere; the mask broadcasts to x.
Tensor MaskedFill(Context& ctx, const Tensor& x, const Tensor& mask,
                  double value);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_WHERE_H_
