// The lower or upper triangle of matrices, with zeros beside it.
//
//   Tensor causal = ops::Tril(ctx, scores);                    // [..., R, C]
//   Tensor above = ops::Triu(ctx, scores, /*diagonal=*/1);
//
// The last two axes of x are matrices. Tril keeps the elements with
// column - row <= diagonal, Triu those with column - row >= diagonal.
// Infinities and NaN outside become 0, too.
//
// Errors (sticky in ctx): kInvalidArgument if x is no matrix of floating
// numbers.

#ifndef NN_OPS_TRIANGLE_H_
#define NN_OPS_TRIANGLE_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Tril(Context& ctx, const Tensor& x, int diagonal = 0);
Tensor Triu(Context& ctx, const Tensor& x, int diagonal = 0);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_TRIANGLE_H_
