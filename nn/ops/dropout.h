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

// Place of the elements of a sample of x among those of the whole, of which
// this rank has a part (DropoutMask).
struct PartOfSample {
  std::int64_t first = 0, row = 0, stride = 0;
};
// Returns that of piece number `piece` of `pieces` that lie side by side along
// the last axis, of which x [N, ..., D] is one.
PartOfSample PieceOfLastAxis(const Tensor& x, int piece, int pieces);
// Returns that of x [N, T, ...], which has the tokens that the rank at `place`
// has of a sequence (nn/ops/tokens.h).
PartOfSample PieceOfTokens(const Tensor& x, const AxisPlace& place);

// Drops from a part what Dropout() drops from the whole. kInvalidArgument: the
// row does not divide the elements of a sample.
Tensor DropoutOfPart(Context& ctx, const Tensor& x, double p,
                     const PartOfSample& part);

// Returns the mask of the present module, for ops that drop inside of their
// kernels; p is above 0 and below 1. Returns none, and fails the context, if
// the context has no random position.
std::optional<DropoutMask> DrawMask(Context& ctx, double p);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_DROPOUT_H_
