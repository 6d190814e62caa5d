// Cumulative sums along an axis (torch.cumsum).
//
//   Tensor at_most = ops::Cumsum(ctx, probabilities, /*axis=*/-1);
//
// y[k] = x[0] + ... + x[k], added up in f64 and rounded once for each element;
// backward adds up from the last element on. Negative axes count from the end.
// Errors (sticky in ctx): kInvalidArgument if x has no such axis or no floating
// numbers.

#ifndef NN_OPS_CUMSUM_H_
#define NN_OPS_CUMSUM_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Cumsum(Context& ctx, const Tensor& x, int axis);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CUMSUM_H_
