// y = x w^T + b, the affine map of torch.nn.functional.linear.
//
//   Tensor y = ops::Linear(ctx, x, ctx.Use(*weight), ctx.Use(*bias));
//
// x [..., K] of any rank above 0, w [M, K], b [M] or undefined -> y [..., M].
// One dtype.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_LINEAR_H_
#define NN_OPS_LINEAR_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Linear(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LINEAR_H_
