// y = x w^T + b, the affine map of torch.nn.functional.linear.
//
//   Tensor y = ops::Linear(ctx, x, ctx.Use(*weight), ctx.Use(*bias));
//
// x [..., K] of any rank above 0, w [M, K], b [M] or undefined -> y [..., M].
// One dtype.
//
// LinearRows() computes only outputs [begin, end), [..., end - begin]: those of
// these rows of w and b, whose other rows get no gradient. So parts of a
// parameter that holds several projections can be applied to different tensors.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_LINEAR_H_
#define NN_OPS_LINEAR_H_

#include <cstdint>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Linear(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b);

Tensor LinearRows(Context& ctx, const Tensor& x, const Tensor& w,
                  const Tensor& b, std::int64_t begin, std::int64_t end);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LINEAR_H_
