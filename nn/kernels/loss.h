// Kernels of losses: the sum over a batch, and the gradient of that *sum*.
//
//   status = kernels.PairLoss({PairLossFunction::kSquaredError}, prediction,
//                             target, stats, dprediction);
//
// `stats` f64[3] holds {sum of losses, count, number of hits}. The gradient may
// be undefined if only statistics are wanted.

#ifndef NN_KERNELS_LOSS_H_
#define NN_KERNELS_LOSS_H_

#include <cstdint>

#include "nn/kernels/element_functions.h"
#include "nn/kernels/op.h"

namespace troupe::nn {

// Options of cross entropy: the target that is not counted, and label
// smoothing: a share label_smoothing of each target is spread evenly over all
// classes (Szegedy et al. 2016, arXiv:1512.00567, sec. 7).
struct CrossEntropyRule {
  // NOLINTNEXTLINE(runtime/explicit): a number is the class to ignore.
  CrossEntropyRule(std::int64_t ignore_index = -100, double label_smoothing = 0)
      : ignore_index(ignore_index), label_smoothing(label_smoothing) {}

  std::int64_t ignore_index;
  double label_smoothing;
};

struct LossKernels {
  // logits[N, C], targets i64[N]; rows whose target is rule.ignore_index are
  // not counted; rule.label_smoothing is 0. stats = {sum of losses, counted
  // rows, rows where the largest logit is the target};
  // dlogits = softmax(logits) - onehot(target), which may be in the memory of
  // the logits.
  //   kOutOfRange: a target is no class; names row and target.
  Op<absl::Status(In logits, FixedIn targets, const CrossEntropyRule& rule,
                  FixedOut stats, Out dlogits)>
      SoftmaxCrossEntropy{"SoftmaxCrossEntropy"};

  // The same as PyTorch defines it with class weights w = class_weights[C],
  // f64 if the logits are, else f32, all 1 if undefined, and smoothing s. With
  // p = softmax(logits) and target y, the loss of a row is
  //     -(1 - s) w[y] log p[y] - s / C * sum_c w[c] log p[c]
  // stats = {sum of losses, sum of w[y], sum of w[y] where the largest logit is
  // the target}. dlogits as above.
  Op<absl::Status(In logits, FixedIn targets, FixedIn class_weights,
                  const CrossEntropyRule& rule, FixedOut stats, Out dlogits)>
      WeightedCrossEntropy{"WeightedCrossEntropy"};

  // prediction, target of one shape. stats = {sum of the losses of their pairs
  // of elements, number of elements, 0}; dprediction is the derivative of each
  // loss by its prediction.
  Op<absl::Status(const PairLossRule& rule, In prediction, In target,
                  FixedOut stats, Out dprediction)>
      PairLoss{"PairLoss"};

  // stats = {weight_a * a[0] + weight_b * b[0], a[1], a[2]}, all f64[3], for
  // statistics of losses or their gradients. `b` may be undefined: it then adds
  // nothing. stats may be a or b.
  Op<absl::Status(FixedIn a, double weight_a, FixedIn b, double weight_b,
                  FixedOut stats)>
      CombineLosses{"CombineLosses"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = LossKernels;
    VisitOps<K>(visit, &K::SoftmaxCrossEntropy, &K::WeightedCrossEntropy,
                &K::PairLoss, &K::CombineLosses);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_LOSS_H_
