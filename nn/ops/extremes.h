// Largest and smallest elements, and where they are.
//
//   ops::Extremes best = ops::Max(ctx, scores, /*axis=*/-1);
//   best.values;                                     // [N], as scores
//   best.indices;                                    // i64[N]
//   Tensor top = ops::Amax(ctx, images, {1, 2});     // [N, H, W, C] to [N, C]
//   Tensor targets = ops::OneHot(ctx, labels, 10);   // f32[N, 10]
//
// Among equal elements the first has the index, and Max and Min give it the
// whole gradient; Amax and Amin give equal elements equal shares, as in
// PyTorch. A NaN counts as larger, and smaller, than any number. Negative axes
// count from the end; an empty set of axes means all.
//
// Errors (sticky in ctx): kInvalidArgument if x has no such axis, or it has
// extent 0.

#ifndef NN_OPS_EXTREMES_H_
#define NN_OPS_EXTREMES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// Without the axis, or with extent 1 along it if `keep_dims`.
struct Extremes {
  Tensor values;
  Tensor indices;  // i64, constants
};
Extremes Max(Context& ctx, const Tensor& x, int axis, bool keep_dims = false);
Extremes Min(Context& ctx, const Tensor& x, int axis, bool keep_dims = false);
// The indices alone.
Tensor Argmax(Context& ctx, const Tensor& x, int axis = -1,
              bool keep_dims = false);
Tensor Argmin(Context& ctx, const Tensor& x, int axis = -1,
              bool keep_dims = false);

Tensor Amax(Context& ctx, const Tensor& x, absl::Span<const int> axes = {},
            bool keep_dims = false);
Tensor Amin(Context& ctx, const Tensor& x, absl::Span<const int> axes = {},
            bool keep_dims = false);

// y[..., c] = 1 where labels[...] = c, else 0; labels i64. A label outside
// [0, classes) is kOutOfRange if the host may read the labels; elsewhere it
// gives a row of zeros.
Tensor OneHot(Context& ctx, const Tensor& labels, std::int64_t classes,
              DType dtype = DType::kF32);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_EXTREMES_H_
