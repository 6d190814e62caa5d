// Sums, means and variances over axes.
//
//   Tensor pooled = ops::Mean(ctx, images, {1, 2});  // [N, H, W, C] to [N, C]
//   Tensor total = ops::Sum(ctx, x);                 // all axes, a scalar []
//
// `axes` is any set of the axes of x; negative ones count from the end; an
// empty set means all. With `keep_dims` they stay, with extent 1. The order of
// the sums follows from the shape of x (nn/kernels/reduction.h). The sum of no
// elements is 0, their mean NaN.
//
// Errors (sticky in ctx): kInvalidArgument if x has no such axis, or one is
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

// The sum of the squared distances from the mean, divided by the number of
// elements less `correction`: 1 for the estimate from a sample (PyTorch's
// default), 0 for the variance of the elements themselves. Made of the ops
// above: two passes, so nothing cancels.
Tensor Variance(Context& ctx, const Tensor& x, absl::Span<const int> axes = {},
                int correction = 1, bool keep_dims = false);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_REDUCE_H_
