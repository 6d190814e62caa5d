// Batched products of matrices (torch.matmul).
//
//   Tensor scores = ops::MatMul(ctx, q, k, {/*transpose_a=*/false,
//                                           /*transpose_b=*/true});
//
// c[..., M, N] = a[..., M, K] b[..., K, N]; an operand with its flag is stored
// as [..., K, M] or [..., N, K]. The axes before the matrices are broadcast to
// one shape (arithmetic.h has the rules), and the gradient of an operand that
// was repeated is the sum over its products. One dtype; K = 0 gives zeros.
//
// If b is one matrix and a is not transposed, all of a is one matrix of many
// rows: as fast as ops::Linear. Errors (sticky in ctx): kInvalidArgument with
// the shapes.

#ifndef NN_OPS_MATMUL_H_
#define NN_OPS_MATMUL_H_

#include "nn/autograd/context.h"
#include "nn/kernels/matmul.h"

namespace troupe::nn::ops {

Tensor MatMul(Context& ctx, const Tensor& a, const Tensor& b,
              MatMulForm form = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_MATMUL_H_
