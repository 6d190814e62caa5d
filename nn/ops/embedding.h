// Rows of a table by their numbers (torch.nn.functional.embedding).
//
//   Tensor y = ops::Embedding(ctx, tokens, ctx.Use(*table));
//
// indices i64 [...], table [V, D] -> y [..., D]. The gradient of the table adds
// rows up in ascending order of the indices' positions: the same bits on any
// machine.
// Errors (sticky in ctx): kInvalidArgument with the shapes; kOutOfRange for an
// index outside the table.

#ifndef NN_OPS_EMBEDDING_H_
#define NN_OPS_EMBEDDING_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Embedding(Context& ctx, const Tensor& indices, const Tensor& table);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_EMBEDDING_H_
