// Comparisons, which give masks: 1 where they hold, else 0.
//
//   Tensor mask = ops::Greater(ctx, scores, 0.5);            // f32[N, 10]
//   Tensor right = ops::Equal(ctx, ops::Argmax(ctx, scores), labels);
//   Tensor hits = ops::Sum(ctx, right);                      // their number
//
// A mask is a constant with the dtype of the operands, or f32 for i64: it can
// be added up and multiplied, and is a condition of ops::Where. Operands have
// one dtype and are broadcast as in arithmetic.h; a number is rounded to the
// dtype of the tensor beside it. No comparison with a NaN holds but NotEqual.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_COMPARE_H_
#define NN_OPS_COMPARE_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Equal(Context& ctx, const Tensor& a, const Tensor& b);
Tensor NotEqual(Context& ctx, const Tensor& a, const Tensor& b);
Tensor Less(Context& ctx, const Tensor& a, const Tensor& b);
Tensor LessEqual(Context& ctx, const Tensor& a, const Tensor& b);
Tensor Greater(Context& ctx, const Tensor& a, const Tensor& b);
Tensor GreaterEqual(Context& ctx, const Tensor& a, const Tensor& b);

Tensor Equal(Context& ctx, const Tensor& a, double b);
Tensor NotEqual(Context& ctx, const Tensor& a, double b);
Tensor Less(Context& ctx, const Tensor& a, double b);
Tensor LessEqual(Context& ctx, const Tensor& a, double b);
Tensor Greater(Context& ctx, const Tensor& a, double b);
Tensor GreaterEqual(Context& ctx, const Tensor& a, double b);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_COMPARE_H_
