// Losses. Each returns its statistics, f64[3] = {sum, count, correct}: the sum
// of the losses over all counted targets, their number, and how many
// predictions were right (classification). Sums, not means: sums and counts of
// all micro-batches and ranks are added and divided once (docs/determinism.md),
// and backward from a loss gives the gradient of the *sum*.
//
//   Tensor loss = ops::SoftmaxCrossEntropy(ctx, logits, labels);
//   double mean = loss.data<double>()[0] / loss.data<double>()[1];
//
// Losses can be weighted and added:
//
//   Tensor aux = ops::SoftmaxCrossEntropy(ctx, early_logits, labels);
//   Tensor total = ops::AddLosses(ctx, loss, ops::ScaleLoss(ctx, aux, 0.3));
//
// Count and correct of a combination are those of its *first* loss, by whose
// count the whole sum is divided. So where both count the same targets, the
// mean is mean(loss) + 0.3 mean(aux), as in PyTorch; a second loss that counts
// otherwise (the elements of a vector, say) is weighted by the ratio.
//
// The gradient of a loss is taken in forward and multiplied by its weight and
// by the loss scale in backward; with 1 nothing is multiplied. In f16 its
// elements are rounded before they are scaled.
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

// logits [..., C], targets i64 [...]: the classes are the last axis of any
// number of them (PyTorch's functional form takes them as the second).
Tensor SoftmaxCrossEntropy(Context& ctx, const Tensor& logits,
                           const Tensor& targets,
                           std::int64_t ignore_index = kIgnoreIndex);

// prediction and target of one shape and dtype; the mean is over elements.
Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target);

// weight * loss; count and correct stay.
Tensor ScaleLoss(Context& ctx, const Tensor& loss, double weight);

// The sum of both; count and correct are those of `first`.
Tensor AddLosses(Context& ctx, const Tensor& first, const Tensor& second);

// Whether `tensor` can be statistics of a loss: f64[3].
bool IsLoss(const Tensor& tensor);

// What a plan takes: (ctx, the model's output, targets) -> statistics.
using LossFn =
    std::function<Tensor(Context&, const Tensor& output, const Tensor& target)>;

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LOSS_H_
