// Two-dimensional convolution (cross-correlation, as in PyTorch).
//
//   Tensor y = ops::Conv2d(ctx, x, ctx.Use(*weight), ctx.Use(*bias), window);
//
// x [N, H, W, C], w [O, C / groups, R, S], b [O] or undefined -> y [N, P, Q, O]
// with P = (H + 2 pad - dilation (R - 1) - 1) / stride + 1, and Q likewise.
// `options` (conv_options.h) has the groups of channels and the mode of the
// padding. A border other than zeros is an op of its own before it (pad.h).
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_CONV2D_H_
#define NN_OPS_CONV2D_H_

#include "nn/autograd/context.h"
#include "nn/ops/conv_options.h"

namespace troupe::nn::ops {

Tensor Conv2d(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
              const Window2d& window, const ConvOptions& options = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CONV2D_H_
