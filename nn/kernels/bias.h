// Kernels that add biases, for ops whose products do not add them.
//
//   status = kernels.BiasForward(b, y);
//
// Letters: M features, the last axis of y and dy.

#ifndef NN_KERNELS_BIAS_H_
#define NN_KERNELS_BIAS_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct BiasKernels {
  // y[..., M] += b[M]
  Op<absl::Status(In b, InOut y)> BiasForward{"BiasForward"};
  // db[M] (+)= the sum of dy[..., M] over all but the last axis
  Op<absl::Status(In dy, bool accumulate, Grad db)> BiasBackward{
      "BiasBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = BiasKernels;
    VisitOps<K>(visit, &K::BiasForward, &K::BiasBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_BIAS_H_
