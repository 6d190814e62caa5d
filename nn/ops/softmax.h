// Softmax along an axis, and its logarithm.
//
//   Tensor probabilities = ops::Softmax(ctx, scores);
//   Tensor by_channel = ops::LogSoftmax(ctx, images, /*axis=*/1);
//
// x has any rank above 0; negative axes count from the end. The largest element
// is subtracted first, so that nothing overflows. Along another axis than the
// last, x is transposed, and y back. For a loss, ops::SoftmaxCrossEntropy
// (loss.h) is faster and needs no y.
//
// Memory: backward keeps y. Errors (sticky in ctx): kInvalidArgument if x has
// no such axis, or it has extent 0.

#ifndef NN_OPS_SOFTMAX_H_
#define NN_OPS_SOFTMAX_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// y = e^x / (sum of e^x along the axis)
Tensor Softmax(Context& ctx, const Tensor& x, int axis = -1);
// y = x - ln(sum of e^x along the axis)
Tensor LogSoftmax(Context& ctx, const Tensor& x, int axis = -1);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_SOFTMAX_H_
