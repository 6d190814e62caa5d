// Losses. Each returns its statistics, f64[3] = {sum, count, correct}: the sum
// of the losses over all counted targets, their number, and the number of
// predictions that were right (classification). Sums, not means: sums and
// counts of all micro-batches and ranks are added and divided once
// (docs/determinism.md), and backward from a loss gives the gradient of the
// *sum*.
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
// count the whole sum is divided. So if both losses count the same targets, the
// mean is mean(loss) + 0.3 mean(aux), as in PyTorch; a second loss with another
// count (the elements of a vector, say) is weighted by the ratio.
//
// Forward computes the gradient of a loss; backward multiplies it by the loss's
// weight and by the loss scale, unless both are 1. In f16 its elements are
// rounded before they are scaled.
//
// Cross entropy writes the gradient over the logits if it has the only
// reference to them, as in SoftmaxCrossEntropy(ctx, model(ctx, x), labels):
// with a large vocabulary they are the largest tensor of a step. A handle that
// you keep preserves the logits.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes, kOutOfRange for a
// label outside the classes.

#ifndef NN_OPS_LOSS_H_
#define NN_OPS_LOSS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

enum LossStat { kLossSum = 0, kLossCount = 1, kLossCorrect = 2 };
inline constexpr int kNumLossStats = 3;

// Target of rows that are not counted; PyTorch's default.
inline constexpr std::int64_t kIgnoreIndex = -100;

// Cross entropy of logits [..., C] and targets i64 [...]: the classes are the
// last axis (in PyTorch's functional form they are the second).
Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           std::int64_t ignore_index = kIgnoreIndex);

// Options of torch.nn.CrossEntropyLoss. With class weights, the count is the
// sum of the weights of the targets, and correct the sum over those predicted
// right: so the mean is PyTorch's, and the accuracy is weighted.
struct CrossEntropyOptions {
  std::int64_t ignore_index = kIgnoreIndex;
  double label_smoothing = 0;              // in [0, 1]
  std::vector<double> class_weights = {};  // one for each class; empty: all 1
};
Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           const CrossEntropyOptions& options);

// Logits [..., P] of which a rank along an axis of the mesh has the columns of
// a piece of the classes, as Linear::kVocabulary gives them: each has
// P = ceil(classes / ranks), in the order of the ranks. Columns behind the last
// class are padding.
struct SplitLogits {
  std::string axis;  // "tp"; empty: one rank has all classes
  std::int64_t classes = 0;
  // Number of blocks of the rank's classes in which sums over them are computed
  // (AxisPlace::blocks); a power of two.
  int blocks = 1;
};
// The same loss of split logits: all ranks along the axis call it, with equal
// targets, and have equal statistics. Targets and weights are those of all
// classes. Two reductions of f64: the largest logit of each row, and four sums.
//   kFailedPrecondition: the context has no collectives along the axis.
Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           const CrossEntropyOptions& options,
                           const SplitLogits& split);

// Losses over elements: prediction and target have one shape and dtype, and the
// mean is over elements. PairLossFunction has the formulas. A target that the
// tape tracks gets a gradient, too; BceWithLogits refuses such a target.
Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target);
Tensor L1Loss(Context& ctx, const Tensor& prediction, const Tensor& target);
// delta > 0, beta >= 0; SmoothL1Loss is HuberLoss / beta, or L1Loss if beta is
// 0.
Tensor HuberLoss(Context& ctx, const Tensor& prediction, const Tensor& target,
                 double delta = 1);
Tensor SmoothL1Loss(Context& ctx, const Tensor& prediction,
                    const Tensor& target, double beta = 1);
// torch.nn.BCEWithLogitsLoss; targets from 0 to 1, pos_weight weighs the ones.
Tensor BceWithLogits(Context& ctx, const Tensor& logits, const Tensor& target,
                     double pos_weight = 1);

// Returns weight * loss; count and correct stay.
Tensor ScaleLoss(Context& ctx, const Tensor& loss, double weight);

// Returns the sum of both; count and correct are those of `first`.
Tensor AddLosses(Context& ctx, const Tensor& first, const Tensor& second);

// Whether `tensor` can be statistics of a loss: f64[3].
bool IsLoss(const Tensor& tensor);

// Objective of training: the mean of a loss over all counted targets of the
// global batch, or its sum, which is not divided (PyTorch's `reduction`). It is
// a property of the step, not of the functions above: a training loop without a
// plan sets StepScalars::summed.
enum class LossReduction : std::uint8_t { kMean, kSum };

// Loss function of a plan: (ctx, the model's output, targets) -> statistics.
// The function owns the output: passed on by std::move(), it gives its memory
// to cross entropy. A function that takes a const Tensor& fits as well.
using LossFn =
    std::function<Tensor(Context&, Tensor output, const Tensor& target)>;

// A LossFn that is declared to take split logits as well: with `split` if the
// ranks along an axis share the head, else with `whole`. A loss without this
// declaration gets whole logits, which costs a gather of them.
//
//   spec.loss = LossFn(SplitLoss{whole, split});
struct SplitLoss {
  LossFn whole;
  std::function<Tensor(Context&, Tensor logits, const Tensor& targets,
                       const SplitLogits&)>
      split;
  Tensor operator()(Context& ctx, Tensor output, const Tensor& target) const {
    return whole(ctx, std::move(output), target);
  }
};
// Returns the declaration of a loss; null: it takes whole logits alone.
inline const SplitLoss* FindSplitLoss(const LossFn& loss) {
  return loss.target<SplitLoss>();
}

// Returns SoftmaxCrossEntropy() as a LossFn (torch.nn.CrossEntropyLoss), which
// takes split logits. The losses above without options convert directly:
// LossFn(MeanSquaredError).
LossFn CrossEntropyLoss(const CrossEntropyOptions& options = {});

// Refuses SoftmaxCrossEntropy(), a call in place of a loss function.
template <bool kCalled = true>
LossFn SoftmaxCrossEntropy() {
  static_assert(!kCalled,
                "this computes a loss of tensors; as a loss function write "
                "nn::ops::CrossEntropyLoss()");
  return nullptr;
}

}  // namespace troupe::nn::ops

#endif  // NN_OPS_LOSS_H_
