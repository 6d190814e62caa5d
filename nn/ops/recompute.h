// Runs a part of the model without keeping its activations; backward runs it a
// second time (Chen et al. 2016, arXiv:1604.06174; torch.utils.checkpoint).
//
//   Tensor y = ops::Recompute(
//       ctx, [&](Context& ctx, const Tensor& x) { return block(ctx, x); }, x);
//
// `part` is called in forward and once more in backward, with the same draws of
// random numbers, and must compute the same; in the second run
// Context::updates_buffers() is false. Objects that it captures must outlive
// the backward. In evaluation, and in a shape-only forward, it runs only once.
//
// Bits and overlap: nn/autograd/segment.h. Errors: those of `part`, and
// kInvalidArgument if it has only one end of a skip connection
// (nn/modules/skip.h).

#ifndef NN_OPS_RECOMPUTE_H_
#define NN_OPS_RECOMPUTE_H_

#include <functional>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

using ModelPart = std::function<Tensor(Context&, const Tensor& x)>;

Tensor Recompute(Context& ctx, const ModelPart& part, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_RECOMPUTE_H_
