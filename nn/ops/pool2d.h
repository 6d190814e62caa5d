// Max and average pooling over windows of an image.
//
//   Tensor y = ops::MaxPool2d(ctx, x, window);       // x, y: (N, H, W, C)
//
// As torch.nn.functional.max_pool2d and avg_pool2d (count_include_pad), with
// ceil_mode off. Errors (sticky in ctx): kInvalidArgument with the shapes; a
// padding above half the kernel, as PyTorch refuses it too.

#ifndef NN_OPS_POOL2D_H_
#define NN_OPS_POOL2D_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor MaxPool2d(Context& ctx, const Tensor& x, const Window2d& window);
Tensor AvgPool2d(Context& ctx, const Tensor& x, const Window2d& window);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_POOL2D_H_
