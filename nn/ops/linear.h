// y = x w^T + b, the affine map of torch.nn.functional.linear.
//
//   Tensor y = ops::Linear(ctx, x, ctx.Use(*weight), ctx.Use(*bias));
//
// x [..., K] of any rank above 0, w [M, K], b [M] or undefined -> y [..., M].
// One dtype.
//
// LinearRows() computes only outputs [begin, end), [..., end - begin]: those of
// these rows of w and b, whose other rows get no gradient. So parts of a
// parameter that holds several projections can be applied to different tensors.
// It is a column product, as below, if it has an axis or blocks, which are
// those of outputs [begin, end).
//
// ColumnLinear() and RowLinear() are one rank's part of a product that ranks
// along an axis of the mesh share (nn/modules/linear.h). A column product has
// some of the rows of w and b, and adds up dx over the ranks in backward. A row
// product has some of the columns of w and of x; it adds up x w^T over the
// ranks in forward, and then adds b. A shape-only forward adds up nothing.
//
// Blocks (DepthBlocksOf(), nn/autograd/sharding.h) make a shared product one
// that has the same bits however many ranks share it: dx of a column product is
// summed in blocks of the outputs, y of a row product in blocks of the inputs.
// Null: in one. An empty axis with blocks: one rank has all of them.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes;
// kFailedPrecondition: the context has no collectives along the axis.

#ifndef NN_OPS_LINEAR_H_
#define NN_OPS_LINEAR_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "nn/autograd/context.h"
#include "nn/autograd/sharding.h"

namespace troupe::nn::ops {

using SharedBlocks = std::shared_ptr<const DepthBlocks>;

Tensor Linear(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b);

Tensor LinearRows(Context& ctx, const Tensor& x, const Tensor& w,
                  const Tensor& b, std::int64_t begin, std::int64_t end,
                  absl::string_view axis = {}, SharedBlocks blocks = nullptr);

Tensor ColumnLinear(Context& ctx, const Tensor& x, const Tensor& w,
                    const Tensor& b, absl::string_view axis,
                    SharedBlocks blocks = nullptr);

Tensor RowLinear(Context& ctx, const Tensor& x, const Tensor& w,
                 const Tensor& b, absl::string_view axis,
                 SharedBlocks blocks = nullptr);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LINEAR_H_
