// The shared front of functions of one number, for the named fronts.
//
//   return Unary(ctx, "silu", UnaryFunction::kSilu, 0, x);

#ifndef NN_OPS_UNARY_H_
#define NN_OPS_UNARY_H_

#include "nn/autograd/context.h"
#include "nn/kernels/unary.h"

namespace troupe::nn::ops {

// Computes y = f(x), element by element, with parameter p. `name` names the op
// in errors, shape records and on the tape; a string of static lifetime.
Tensor Unary(Context& ctx, const char* name, UnaryFunction f, double p,
             const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_UNARY_H_
