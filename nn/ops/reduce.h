// Sums and means over axes.
//
//   Tensor pooled = ops::Mean(ctx, images, {1, 2});  // [N, H, W, C] to [N, C]
//   Tensor total = ops::Sum(ctx, x);                 // of all, a scalar []
//
// Axes are any set of those of x, negative ones count from the end; none are
// all of them. With `keep_dims` they stay, with extent 1. The order of the sums
// follows from the shape of x (nn/kernels/reduction.h). A sum of nothing is 0,
// a mean of nothing NaN.
//
// Errors (sticky in ctx): kInvalidArgument where x has no such axis, or one is
// named twice.

#ifndef NN_OPS_REDUCE_H_
#define NN_OPS_REDUCE_H_

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Sum(Context& ctx, const Tensor& x, absl::Span<const int> axes = {},
           bool keep_dims = false);
Tensor Mean(Context& ctx, const Tensor& x, absl::Span<const int> axes = {},
            bool keep_dims = false);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_REDUCE_H_
