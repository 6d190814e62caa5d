// Shared by fronts of which an operand may be a number instead of a tensor.
//
//   return Less(ctx, a, ScalarLike(ctx, "less", a, 0.5));

#ifndef NN_OPS_SCALAR_LIKE_H_
#define NN_OPS_SCALAR_LIKE_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// Returns a tensor [] of the dtype of x, which is floating or i64.
//   kInvalidArgument (sticky in ctx): an i64 cannot hold the value.
Tensor ScalarLike(Context& ctx, const char* name, const Tensor& x,
                  double value);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_SCALAR_LIKE_H_
