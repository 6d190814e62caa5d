// Repetition of a tensor along axes, as a copy (torch.expand gives a view).
//
//   Tensor rows = ops::Expand(ctx, row, {N, D});     // from [D] or [1, D]
//   Tensor tiled = ops::Repeat(ctx, x, {2, 3});      // [N, D] to [2 N, 3 D]
//
// Expand broadcasts as NumPy does: axes are aligned at the last one, and an
// axis that is missing or has extent 1 is repeated. Repeat puts copies side by
// side (torch.repeat): counts[i] of them along axis i; with more counts than x
// has axes, those axes come in front. An op that broadcasts by itself, such as
// ops::Add, needs neither. Any dtype; gradients are summed over the copies.
//
// Errors (sticky in ctx): kInvalidArgument if x does not fit, or a count is
// negative.

#ifndef NN_OPS_EXPAND_H_
#define NN_OPS_EXPAND_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Expand(Context& ctx, const Tensor& x, const Shape& shape);
Tensor Repeat(Context& ctx, const Tensor& x,
              absl::Span<const std::int64_t> counts);

// The coordinates of all points of a grid (torch.meshgrid): tensor i of the
// result repeats xs[i], a vector, along every axis but i. With kXY the first
// two axes are exchanged, as for the columns and rows of an image. Empty after
// an error.
enum class GridIndexing { kIJ, kXY };
std::vector<Tensor> Meshgrid(Context& ctx, absl::Span<const Tensor> xs,
                             GridIndexing indexing = GridIndexing::kIJ);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_EXPAND_H_
