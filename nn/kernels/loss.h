// Kernels of losses: the sum over a batch, and the gradient of that *sum*.
//
//   status = kernels.MeanSquaredError(prediction, target, stats, dprediction);
//
// `stats` f64[3] holds {sum of losses, what was counted, hits}. The gradient
// may be undefined where only statistics are wanted.

#ifndef NN_KERNELS_LOSS_H_
#define NN_KERNELS_LOSS_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

struct LossKernels {
  // logits[N, C], targets i64[N]; rows whose target is `ignore_index` count
  // nothing. stats = {sum of losses, counted rows, rows where the largest logit
  // is the target}; dlogits = softmax(logits) - onehot(target).
  //   kOutOfRange: a target is no class; names row and target.
  Op<absl::Status(In logits, FixedIn targets, std::int64_t ignore_index,
                  FixedOut stats, Out dlogits)>
      SoftmaxCrossEntropy{"SoftmaxCrossEntropy"};

  // prediction, target of one shape. stats = {sum of squared errors, number of
  // elements, 0}; dprediction = 2 (prediction - target).
  Op<absl::Status(In prediction, In target, FixedOut stats, Out dprediction)>
      MeanSquaredError{"MeanSquaredError"};

  // stats = {weight_a * a[0] + weight_b * b[0], a[1], a[2]}, all f64[3], on the
  // statistics of losses or the gradients of them. `b` may be undefined: it
  // then adds nothing. stats may be a or b.
  Op<absl::Status(FixedIn a, double weight_a, FixedIn b, double weight_b,
                  FixedOut stats)>
      CombineLosses{"CombineLosses"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = LossKernels;
    VisitOps<K>(visit, &K::SoftmaxCrossEntropy, &K::MeanSquaredError,
                &K::CombineLosses);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_LOSS_H_
