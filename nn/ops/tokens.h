// Sequences whose tokens ranks along an axis of the mesh share (sequence
// parallelism; Korthikanti et al. 2022, arXiv:2205.05198, sec. 4.2.2): of
// x [N, T, ...] each rank has T / ranks tokens, in the order of the ranks.
//
//   const AxisPlace tp = {"tp", /*coord=*/1, /*size=*/2, /*sequence=*/true};
//   Tensor own = ops::TakeTokens(ctx, x, tp);         // [N, T / 2, ...]
//   Tensor same = ops::GatherTokens(ctx, own, tp);    // x
//   Tensor sum = ops::SumTokens(ctx, part, bias, tp);     // [N, T / 2, M]
//
// TakeTokens() is for x that all ranks have whole; so have they its gradient.
//
// GatherTokens() is its inverse. What is computed of its result may be the same
// on all ranks, with the same gradient; or each rank computes a part of it, and
// Gradient::kParts adds up their gradients.
//
// SumTokens() adds up part [N, T, M] over the ranks, of which each gets the sum
// of its own tokens, plus a bias [M] or an undefined tensor. The gradient of
// the bias is a part, that of these tokens (LocaliseForTokens()).
//
// ColumnLinearOfTokens() and RowLinearOfTokens() are products that ranks share
// (nn/ops/linear.h) between such sequences. The first gathers x, and gathers it
// again for the weight's gradient instead of keeping it; the second gives the
// rank's own tokens of y.
//
// Each sends half as many bytes as a sum of the whole tensor: in forward or in
// backward, or in both. Ranks call these in one order, with equal shapes; an
// empty tensor asks nobody. A shape-only forward communicates nothing.
// Errors (sticky in ctx): kInvalidArgument: the ranks cannot share T tokens
// equally; kFailedPrecondition: the context has no collectives along the axis;
// the error that ended a wait for peers.

#ifndef NN_OPS_TOKENS_H_
#define NN_OPS_TOKENS_H_

#include "absl/status/statusor.h"
#include "nn/autograd/context.h"
#include "nn/autograd/sharding.h"
#include "nn/collectives.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn::ops {

Tensor TakeTokens(Context& ctx, const Tensor& x, const AxisPlace& place);

enum class Gradient { kWhole, kParts };
Tensor GatherTokens(Context& ctx, const Tensor& own, const AxisPlace& place,
                    Gradient gradient = Gradient::kWhole);

Tensor SumTokens(Context& ctx, const Tensor& part, const Tensor& bias,
                 const AxisPlace& place);

Tensor ColumnLinearOfTokens(Context& ctx, const Tensor& x, const Tensor& w,
                            const Tensor& b, const AxisPlace& place);
Tensor RowLinearOfTokens(Context& ctx, const Tensor& x, const Tensor& w,
                         const Tensor& b, const AxisPlace& place);

// Returns the shape of a rank's tokens of `whole`. Fails the context, and
// returns `whole`, if the ranks cannot share them.
Shape OwnTokens(Context& ctx, const Shape& whole, const AxisPlace& place);

// For ops that communicate: return the tokens of all ranks, and the rank's own
// of the sum of `part`.
absl::StatusOr<Tensor> GatheredTokens(Kernels& kernels, Collectives& peers,
                                      const Tensor& own);
absl::StatusOr<Tensor> SummedTokens(Kernels& kernels, Collectives& peers,
                                    const Tensor& part);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_TOKENS_H_
