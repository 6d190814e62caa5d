// The same elements under another shape, without a copy.
//
//   Tensor heads = ops::Reshape(ctx, x, {N, T, H, D / H});   // from [N, T, D]
//
// y shares the memory of x and, unlike Tensor::View(), is an op on the tape:
// gradients flow. Elements keep their row-major order; images are (N, H, W, C),
// so ops::Flatten gives PyTorch's order of features.
//
// Errors (sticky in ctx): kInvalidArgument if the number of elements differs.

#ifndef NN_OPS_RESHAPE_H_
#define NN_OPS_RESHAPE_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Reshape(Context& ctx, const Tensor& x, const Shape& shape);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_RESHAPE_H_
