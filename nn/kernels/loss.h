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

// Classes whose logits one of several ranks has: `count` from `first` on, out
// of `classes`. Logits have at least `count` columns; those behind are padding.
struct ClassPiece {
  std::int64_t first = 0, count = 0, classes = 0;
};

// Sums of one row of split logits that the ranks add up, in f64.
enum PieceSum {
  kExpSum = 0,       // addends e^(x[c] - m), with the row's largest logit m
  kTargetLogit = 1,  // x[y] - m at the rank that has the target y, else 0
  // Addends w[c] (x[c] - m), with class weights w; 0 without label smoothing.
  kWeightedSum = 2,
  // 1 for each rank that finds the target not to be the first of the largest
  // logits.
  kNotFirst = 3,
};
inline constexpr int kNumPieceSums = 4;

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

  // Parts of WeightedCrossEntropy for logits[N, P] of a piece of the classes:
  //
  //   kernels.PieceLargest(logits, piece, largest);
  //   kernels.PieceSums(logits, .., largest, sums);
  //   kernels.PieceCrossEntropy(logits, .., largest, sums, stats, dlogits);
  //
  // Between two calls the ranks reduce the result of the first, by kMax and by
  // kSum. largest f64[N] (-inf for a piece without classes), sums
  // f64[N, kNumPieceSums]; class weights are those of all classes. All ranks
  // have equal statistics, and gradients of their own logits, 0 for padding.
  Op<absl::Status(In logits, const ClassPiece& piece, FixedOut largest)>
      PieceLargest{"PieceLargest"};
  Op<absl::Status(In logits, FixedIn targets, FixedIn class_weights,
                  const CrossEntropyRule& rule, const ClassPiece& piece,
                  FixedIn largest, FixedOut sums)>
      PieceSums{"PieceSums"};
  Op<absl::Status(In logits, FixedIn targets, FixedIn class_weights,
                  const CrossEntropyRule& rule, const ClassPiece& piece,
                  FixedIn largest, FixedIn sums, FixedOut stats, Out dlogits)>
      PieceCrossEntropy{"PieceCrossEntropy"};

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
                &K::PieceLargest, &K::PieceSums, &K::PieceCrossEntropy,
                &K::PairLoss, &K::CombineLosses);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_LOSS_H_
