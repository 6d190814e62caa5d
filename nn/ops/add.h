// y = a + b, element by element, broadcast as NumPy does it (arithmetic.h has
// the rules): residual connections, biases.
//
//   Tensor y = ops::Add(ctx, x, block(ctx, x));

#ifndef NN_OPS_ADD_H_
#define NN_OPS_ADD_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Add(Context& ctx, const Tensor& a, const Tensor& b);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ADD_H_
