// Flattens (N, ...) to (N, the rest). The elements of images are put in C, H, W
// order, as PyTorch's Flatten of an NCHW tensor does, so that its Linear
// weights fit unchanged.
//
//   Tensor rows = ops::Flatten(ctx, images);     // (N, H, W, C) -> (N, C*H*W)

#ifndef NN_OPS_FLATTEN_H_
#define NN_OPS_FLATTEN_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Flatten(Context& ctx, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_FLATTEN_H_
