// A border around images or signals (torch.nn.functional.pad): zeros, or pixels
// of the image.
//
//   Padding2d padding{/*top=*/1, /*bottom=*/1, /*left=*/2, /*right=*/2};
//   padding.mode = PadMode::kReflect;
//   Tensor y = ops::Pad2d(ctx, x, padding);
//   Tensor z = ops::Pad1d(ctx, signals, {/*before=*/3, /*after=*/0});
//
// x [N, H, W, C] -> [N, top + H + bottom, left + W + right, C]; signals
// [N, L, C] -> [N, before + L + after, C]. PadMode (nn/kernels/pad2d.h) defines
// the contents of a border.
// Errors (sticky in ctx): kInvalidArgument with the shapes, for a border that
// is negative, or larger than its mode can take from the image.

#ifndef NN_OPS_PAD_H_
#define NN_OPS_PAD_H_

#include "nn/autograd/context.h"
#include "nn/kernels/pad2d.h"

namespace troupe::nn::ops {

Tensor Pad2d(Context& ctx, const Tensor& x, const Padding2d& padding);
Tensor Pad1d(Context& ctx, const Tensor& x, const Padding1d& padding);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_PAD_H_
