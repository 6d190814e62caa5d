// Conversion to another floating dtype, rounded to nearest, between parts of a
// model that compute in different dtypes. The gradient is cast back.
//
//   Tensor y = ops::Cast(ctx, x, DType::kBF16);     // x itself if it is bf16
//
// Errors (sticky in ctx): kInvalidArgument for an integer dtype.

#ifndef NN_OPS_CAST_H_
#define NN_OPS_CAST_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Cast(Context& ctx, const Tensor& x, DType dtype);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CAST_H_
