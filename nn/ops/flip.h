// The elements of an axis in reverse order, or shifted in a circle, as a copy.
//
//   Tensor mirrored = ops::Flip(ctx, images, {2});      // left to right
//   Tensor shifted = ops::Roll(ctx, x, /*shift=*/1, /*axis=*/0);
//
// Roll moves element i to i + shift, and what leaves the axis at one end enters
// at the other. Any dtype; negative axes count from the end.
//
// Errors (sticky in ctx): kInvalidArgument if x has no such axis, or one is
// named twice.

#ifndef NN_OPS_FLIP_H_
#define NN_OPS_FLIP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Flip(Context& ctx, const Tensor& x, absl::Span<const int> axes);
Tensor Roll(Context& ctx, const Tensor& x, std::int64_t shift, int axis);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_FLIP_H_
