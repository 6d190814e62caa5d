// The front of all functions of one number, for the fronts that name them.
//
//   return Unary(ctx, "silu", UnaryFunction::kSilu, 0, x);

#ifndef NN_OPS_UNARY_H_
#define NN_OPS_UNARY_H_

#include "nn/autograd/context.h"
#include "nn/kernels/unary.h"

namespace troupe::nn::ops {

// y = f(x), element by element, with parameter p. `name` is the op's in errors,
// shape records and on the tape; a constant.
Tensor Unary(Context& ctx, const char* name, UnaryFunction f, double p,
             const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_UNARY_H_
