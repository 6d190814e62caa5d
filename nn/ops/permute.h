// The axes of a tensor in another order, as a copy (torch.permute and
// torch.transpose give views).
//
//   Tensor q = ops::Permute(ctx, x, {0, 2, 1, 3});  // [N, T, H, D] to
//       // [N, H, T, D]
//   Tensor t = ops::Transpose(ctx, x, -2, -1);      // two axes exchanged
//
// Axis i of y is axis axes[i] of x. Any dtype; negative axes count from the
// end. Errors (sticky in ctx): kInvalidArgument unless `axes` has each axis of
// x once.

#ifndef NN_OPS_PERMUTE_H_
#define NN_OPS_PERMUTE_H_

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Permute(Context& ctx, const Tensor& x, absl::Span<const int> axes);
Tensor Transpose(Context& ctx, const Tensor& x, int first, int second);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_PERMUTE_H_
