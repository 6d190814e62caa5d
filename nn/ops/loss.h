// Losses. Each returns its statistics, f64[3] = {sum, count, correct}: the sum
// of the losses over all counted targets, their number, and how many
// predictions were right (classification). Sums, not means: sums and counts of
// all micro-batches and ranks are added and divided once (docs/determinism.md),
// and backward from a loss gives the gradient of the *sum*.
//
//   Tensor loss = ops::SoftmaxCrossEntropy(ctx, logits, labels);
//   double mean = loss.data<double>()[0] / loss.data<double>()[1];
//
// Errors (sticky in ctx): kInvalidArgument with the shapes, kOutOfRange for a
// label outside the classes.

#ifndef NN_OPS_LOSS_H_
#define NN_OPS_LOSS_H_

#include <cstdint>
#include <functional>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

enum LossStat { kLossSum = 0, kLossCount = 1, kLossCorrect = 2 };
inline constexpr int kNumLossStats = 3;

// Rows with this target count nothing; PyTorch's default.
inline constexpr std::int64_t kIgnoreIndex = -100;

// logits [N, C], targets i64 [N].
Tensor SoftmaxCrossEntropy(Context& ctx, const Tensor& logits,
                           const Tensor& targets,
                           std::int64_t ignore_index = kIgnoreIndex);

// prediction and target of one shape and dtype; the mean is over elements.
Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target);

// What a plan takes: (ctx, the model's output, targets) -> statistics.
using LossFn =
    std::function<Tensor(Context&, const Tensor& output, const Tensor& target)>;

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LOSS_H_
