// Concatenation of tensors along an axis, present or new.
//
//   Tensor y = ops::Concat(ctx, {x, skipped}, /*axis=*/-1);
//
//   Tensor pair = ops::Stack(ctx, {x, skipped}, 0);       // [2, ...]
//
// Takes at least one tensor; all have one dtype (any) and shapes that differ
// along the axis only. Negative axes count from the end.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_CONCAT_H_
#define NN_OPS_CONCAT_H_

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Concat(Context& ctx, absl::Span<const Tensor> xs, int axis);
// `axis` is an axis of the result; all tensors have one shape.
Tensor Stack(Context& ctx, absl::Span<const Tensor> xs, int axis);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CONCAT_H_
