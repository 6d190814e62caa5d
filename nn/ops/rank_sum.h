// Sums over the ranks along an axis of the mesh, for layers of which each rank
// has a part (Shoeybi et al. 2019, arXiv:1909.08053, sec. 3, there g and f):
//
//   Tensor y = ops::RankSum(ctx, part, "tp");           // g
//   Tensor same = ops::RankSumOfGradient(ctx, x, "tp");    // f
//
// RankSum() adds up x in forward, and hands the gradient on.
// RankSumOfGradient() hands x on, and adds up its gradient in backward: for a
// tensor, or a parameter, that all ranks have whole and each uses for its part.
// Linear has both built in (nn/ops/linear.h).
//
// GatherColumns() gives all ranks the whole of a tensor of which each has some
// columns, in backward each the gradient of its own:
//
//   Tensor logits = ops::GatherColumns(ctx, part, /*columns=*/50257, "tp");
//
// A part has ceil(columns / ranks) of them; those behind the last column are
// left out.
//
// SumOfBlocks() adds up blocks of a sum on one rank by the tree by which ranks
// add up (DepthBlocks, nn/autograd/sharding.h).
//
// All ranks have the same bits. The ranks call these in one order, with equal
// shapes; an empty tensor asks nobody. A shape-only forward adds up nothing.
// Errors (sticky in ctx): kFailedPrecondition: the context has no collectives
// along the axis; the error that ended a wait for peers.

#ifndef NN_OPS_RANK_SUM_H_
#define NN_OPS_RANK_SUM_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor RankSum(Context& ctx, const Tensor& x, absl::string_view axis);
Tensor RankSumOfGradient(Context& ctx, const Tensor& x, absl::string_view axis);

Tensor GatherColumns(Context& ctx, const Tensor& part, std::int64_t columns,
                     absl::string_view axis);

// Returns the peers along `axis`, for ops that communicate. Null in a
// shape-only forward, and after an error.
Collectives* PeersAlong(Context& ctx, absl::string_view axis);

// Adds up `part`, in place, over the ranks; null peers: there is one. Peers
// have the same batch, so that either all of them or none have an empty one.
absl::Status AddUp(Collectives* peers, const Tensor& part);

// sum = the sum of blocks [begin, end), whose number is a power of two.
// `compute` writes one block into a tensor of the shape and dtype of `sum`.
// Takes the memory of log2(end - begin) such tensors.
using ComputeBlock = std::function<absl::Status(int block, Tensor& into)>;
absl::Status SumOfBlocks(Kernels& kernels, int begin, int end,
                         const ComputeBlock& compute, Tensor& sum);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_RANK_SUM_H_
