// Parts of a tensor along an axis.
//
//   Tensor last = ops::Slice(ctx, x, /*axis=*/1, T - 1, T);    // [N, 1, D]
//   std::vector<Tensor> qkv = ops::Split(ctx, x, -1, {D, D, D});
//
// A part that is contiguous in memory (all axes before the sliced one have
// extent 1) shares the memory of x; any other is a copy. Any dtype; negative
// axes count from the end. Backward of each part fills a gradient of the shape
// of x, with zeros beside the part.
//
// Errors (sticky in ctx): kInvalidArgument if x has no such axis or range, or
// the extents of the parts do not add up to the axis's.

#ifndef NN_OPS_SLICE_H_
#define NN_OPS_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// Returns indices [begin, end) of the axis.
Tensor Slice(Context& ctx, const Tensor& x, int axis, std::int64_t begin,
             std::int64_t end);
// Returns consecutive parts of these extents. Empty after an error.
std::vector<Tensor> Split(Context& ctx, const Tensor& x, int axis,
                          absl::Span<const std::int64_t> extents);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_SLICE_H_
