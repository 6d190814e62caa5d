// Products and sums of one or two tensors by names of their axes
// (torch.einsum).
//
//   Tensor scores = ops::Einsum(ctx, "bqhd,bkhd->bhqk", {q, k});
//   Tensor outer = ops::Einsum(ctx, "i,j->ij", {a, b});
//   Tensor columns = ops::Einsum(ctx, "ij->j", {x});        // sums
//   Tensor turned = ops::Einsum(ctx, "nhwc->nchw", {x});
//
// A subscript is a letter; spaces are ignored. Subscripts that the result lacks
// are summed over. Two operands become one batched product of matrices
// (matmul.h), or one product of elements if nothing is summed over both;
// operands whose axes stand in another order are copied first, so that an
// expression costs no more than Permute, Reshape and MatMul by hand.
//
// Not supported: a subscript twice in one operand (diagonals), "...", and an
// equation without "->". Axes of one subscript have one extent: 1 is not
// repeated.
//
// Errors (sticky in ctx): kInvalidArgument with the equation, the subscript and
// the shapes.

#ifndef NN_OPS_EINSUM_H_
#define NN_OPS_EINSUM_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Einsum(Context& ctx, absl::string_view equation,
              absl::Span<const Tensor> operands);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_EINSUM_H_
