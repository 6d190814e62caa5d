// Transposed convolution (torch.nn.functional.conv_transpose2d): the linear map
// whose matrix is the transpose of a convolution's, so it enlarges an image by
// its stride (Zeiler et al. 2010, "Deconvolutional networks").
//
//   const Tensor w = ctx.Use(*weight);
//   Tensor y = ops::ConvTranspose2d(ctx, x, w, /*b=*/Tensor(), window);
//
// x [N, H, W, C], w [C, O / groups, R, S], b [O] or undefined -> y [N, P, Q, O]
// with P = (H - 1) stride - 2 pad + dilation (R - 1) + output_padding + 1, and
// Q likewise. The window is that of the convolution which maps y to x; the
// output_padding, less than the stride, is the number of rows and columns of y
// that this convolution does not reach.
//
// Its three passes are passes of that convolution: forward is its input
// gradient, the gradient of x its forward, and the gradient of w its weight
// gradient with x and dy exchanged.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_CONV_TRANSPOSE2D_H_
#define NN_OPS_CONV_TRANSPOSE2D_H_

#include "nn/autograd/context.h"
#include "nn/kernels/window1d.h"
#include "nn/ops/conv_options.h"

namespace troupe::nn::ops {

Tensor ConvTranspose2d(Context& ctx, const Tensor& x, const Tensor& w,
                       const Tensor& b, const Window2d& window,
                       const ConvTransposeOptions& options = {});

// The same for signals: x [N, L, C], w [C, O / groups, K] -> y [N, M, O]; of
// the output paddings it uses output_padding_w.
Tensor ConvTranspose1d(Context& ctx, const Tensor& x, const Tensor& w,
                       const Tensor& b, const Window1d& window,
                       const ConvTransposeOptions& options = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CONV_TRANSPOSE2D_H_
