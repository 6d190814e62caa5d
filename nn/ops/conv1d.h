// One-dimensional convolution (torch.nn.functional.conv1d) of signals.
//
//   Window1d window{/*kernel=*/3};
//   Tensor y = ops::Conv1d(ctx, x, ctx.Use(*weight), Tensor(), window);
//
// x [N, L, C], w [O, C / groups, K], b [O] or undefined -> y [N, M, O] with
// M = (L + 2 pad - dilation (K - 1) - 1) / stride + 1: a two-dimensional
// convolution of images of one row, by the same kernels.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_CONV1D_H_
#define NN_OPS_CONV1D_H_

#include "nn/autograd/context.h"
#include "nn/kernels/window1d.h"
#include "nn/ops/conv_options.h"

namespace troupe::nn::ops {

Tensor Conv1d(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
              const Window1d& window, const ConvOptions& options = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CONV1D_H_
