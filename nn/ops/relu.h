// y = max(x, 0), element by element; NaN stays NaN. Any shape.
//
//   Tensor y = ops::Relu(ctx, x);

#ifndef NN_OPS_RELU_H_
#define NN_OPS_RELU_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Relu(Context& ctx, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_RELU_H_
