// Dropout (Srivastava et al. 2014): in training each element is 0 with
// probability p and divided by 1 - p otherwise; in evaluation y is x.
//
//   Tensor y = ops::Dropout(ctx, x, 0.1);       // x [N, ...]
//
// The draws depend on the sample's number in the global batch, not on ranks,
// micro-batches and stage cuts (Context::set_random); backward draws the mask
// again instead of keeping it.
// Errors (sticky in ctx): kInvalidArgument: p is not in [0, 1], or x has no
// axis of samples. kFailedPrecondition: the context has no random position.

#ifndef NN_OPS_DROPOUT_H_
#define NN_OPS_DROPOUT_H_

#include <cstdint>
#include <optional>

#include "nn/autograd/context.h"
#include "nn/kernels/dropout.h"

namespace troupe::nn::ops {

Tensor Dropout(Context& ctx, const Tensor& x, double p);

// Number of a rank's piece of a tensor whose last axis is cut among ranks, and
// number of pieces.
struct LastAxisPiece {
  int piece = 0, pieces = 1;
};

// Drops from a piece what Dropout() drops from the whole. kInvalidArgument: x
// has no axis besides that of samples.
Tensor DropoutOfPiece(Context& ctx, const Tensor& x, double p,
                      const LastAxisPiece& at);

// Returns the mask of the present module, for ops that drop inside of their
// kernels; p is above 0 and below 1. Returns none, and fails the context, if
// the context has no random position.
std::optional<DropoutMask> DrawMask(Context& ctx, double p);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_DROPOUT_H_
