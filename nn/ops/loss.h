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
// Cross entropy writes the gradient over logits that nobody else refers to,
// such as those of SoftmaxCrossEntropy(ctx, model(ctx, x), labels): with a
// large vocabulary they are the largest tensor of a step. A handle that you
// keep keeps the logits.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes, kOutOfRange for a
// label outside the classes.

#ifndef NN_OPS_LOSS_H_
#define NN_OPS_LOSS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

enum LossStat { kLossSum = 0, kLossCount = 1, kLossCorrect = 2 };
inline constexpr int kNumLossStats = 3;

// Rows with this target count nothing; PyTorch's default.
inline constexpr std::int64_t kIgnoreIndex = -100;

// logits [..., C], targets i64 [...]: the classes are the last axis of any
// number of them (PyTorch's functional form takes them as the second).
Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           std::int64_t ignore_index = kIgnoreIndex);

// torch.nn.CrossEntropyLoss's options. With class weights, the count is the sum
// of the weights of the targets, and correct that of those predicted right: so
// the mean is PyTorch's, and the accuracy one of weights.
struct CrossEntropyOptions {
  std::int64_t ignore_index = kIgnoreIndex;
  double label_smoothing = 0;             // from 0 to 1
  std::vector<float> class_weights = {};  // by class; empty: all 1
};
Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           const CrossEntropyOptions& options);

// Of these, prediction and target have one shape and dtype, and the mean is
// over elements. The formulas are in nn/kernels/loss.h.
Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target);
Tensor L1Loss(Context& ctx, const Tensor& prediction, const Tensor& target);
// delta > 0, beta >= 0; SmoothL1Loss is HuberLoss / beta, or L1Loss where beta
// is 0.
Tensor HuberLoss(Context& ctx, const Tensor& prediction, const Tensor& target,
                 double delta = 1);
Tensor SmoothL1Loss(Context& ctx, const Tensor& prediction,
                    const Tensor& target, double beta = 1);
// torch.nn.BCEWithLogitsLoss; targets from 0 to 1, pos_weight that of ones.
Tensor BceWithLogits(Context& ctx, const Tensor& logits, const Tensor& target,
                     double pos_weight = 1);

// weight * loss; count and correct stay.
Tensor ScaleLoss(Context& ctx, const Tensor& loss, double weight);

// The sum of both; count and correct are those of `first`.
Tensor AddLosses(Context& ctx, const Tensor& first, const Tensor& second);

// Whether `tensor` can be statistics of a loss: f64[3].
bool IsLoss(const Tensor& tensor);

// What training makes small: the mean of a loss over all counted targets of the
// global batch, or its sum, which no count divides (PyTorch's `reduction`). It
// is a matter of the step, not of the functions above: where you train by hand,
// StepScalars::summed says it.
enum class LossReduction : std::uint8_t { kMean, kSum };

// What a plan takes: (ctx, the model's output, targets) -> statistics. The
// output is the function's own: one that hands it on, by std::move(), gives its
// memory to cross entropy. One that takes a const Tensor& fits as well.
using LossFn =
    std::function<Tensor(Context&, Tensor output, const Tensor& target)>;

// SoftmaxCrossEntropy() as such a function (torch.nn.CrossEntropyLoss). Those
// above that have no options are one by themselves: LossFn(MeanSquaredError).
LossFn CrossEntropyLoss(const CrossEntropyOptions& options = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LOSS_H_
