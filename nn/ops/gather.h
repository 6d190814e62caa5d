// Elements by their indices along an axis, and sums of elements that have one
// index (torch.gather, index_select, scatter_add, index_add).
//
//   Tensor own = ops::Gather(ctx, log_probs, -1, labels);    // f32[N, 1] of
//       // f32[N, C], labels i64[N, 1]
//   Tensor rows = ops::IndexSelect(ctx, x, 0, order);        // order i64[N]
//   Tensor sums = ops::IndexAdd(ctx, zeros, 0, groups, x);   // groups i64[N]
//
// Indices are i64, from 0 on. Equal indices add up in ascending order, in
// values and in gradients, so that the same operands give the same bits.
// Negative axes count from the end.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes; kOutOfRange with
// the number of the index, its value and the axis's elements. On a GPU the
// second comes with a later call, and the element is 0 until then.

#ifndef NN_OPS_GATHER_H_
#define NN_OPS_GATHER_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// y has the shape of `index`: y[i][j] = x[index[i][j]][j] for axis 0. Along all
// other axes `index` has at most the elements of x, of which the first are
// taken. Any dtype.
Tensor Gather(Context& ctx, const Tensor& x, int axis, const Tensor& index);

// y[..., j, ...] = x[..., index[j], ...]; index i64[J]. Any dtype.
Tensor IndexSelect(Context& ctx, const Tensor& x, int axis,
                   const Tensor& index);

// y = x, and y[index[i][j]][j] += source[i][j] for axis 0. `index` and `source`
// have one shape, which differs from that of x along the axis only.
Tensor ScatterAdd(Context& ctx, const Tensor& x, int axis, const Tensor& index,
                  const Tensor& source);

// y = x, and y[..., index[j], ...] += source[..., j, ...]; index i64[J], and
// `source` has J elements along the axis.
Tensor IndexAdd(Context& ctx, const Tensor& x, int axis, const Tensor& index,
                const Tensor& source);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_GATHER_H_
