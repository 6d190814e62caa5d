// Dropout (Srivastava et al. 2014): in training each element is 0 with
// probability p and divided by 1 - p otherwise; in evaluation y is x.
//
//   Tensor y = ops::Dropout(ctx, x, 0.1);       // x [N, ...]
//
// The mask is drawn by the sample's number in the global batch, so it does not
// depend on ranks, micro-batches and stage cuts (Context::set_random), and it
// is drawn again in backward instead of being kept.
// Errors (sticky in ctx): kInvalidArgument: p is not in [0, 1], or x has no
// axis of samples. kFailedPrecondition: the context has no random position.

#ifndef NN_OPS_DROPOUT_H_
#define NN_OPS_DROPOUT_H_

#include <optional>

#include "nn/autograd/context.h"
#include "nn/kernels/dropout.h"

namespace troupe::nn::ops {

Tensor Dropout(Context& ctx, const Tensor& x, double p);

// What the present module drops, for ops that drop inside of their kernels.
// Nothing, and a failed context, where that has no random position. p is above
// 0 and below 1.
std::optional<DropoutMask> DrawMask(Context& ctx, double p);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_DROPOUT_H_
