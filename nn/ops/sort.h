// Elements in order, and where they were (torch.sort, torch.topk).
//
//   ops::Sorted best = ops::TopK(ctx, scores, /*k=*/5);
//   best.values;                                     // [N, 5], largest first
//   best.indices;                                    // i64[N, 5]
//   Tensor order = ops::Argsort(ctx, scores, /*axis=*/0, /*descending=*/true);
//
// Equal elements keep their order on every device, as in a stable sort. A NaN
// is larger than any number. Gradients go back to where the elements were;
// indices are constants. Negative axes count from the end.
//
// Errors (sticky in ctx): kInvalidArgument if x has no such axis or no floating
// numbers, or the axis has fewer than k elements.

#ifndef NN_OPS_SORT_H_
#define NN_OPS_SORT_H_

#include <cstdint>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

struct Sorted {
  Tensor values;
  Tensor indices;  // i64, constants
};

// The k largest elements along the axis, the largest first; or the smallest.
Sorted TopK(Context& ctx, const Tensor& x, std::int64_t k, int axis = -1,
            bool largest = true);
Sorted Sort(Context& ctx, const Tensor& x, int axis = -1,
            bool descending = false);
// The indices alone.
Tensor Argsort(Context& ctx, const Tensor& x, int axis = -1,
               bool descending = false);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_SORT_H_
