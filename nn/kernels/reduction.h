// Kernels of sums over axes.
//
//   status = kernels.SumAxes(x, /*divisor=*/H * W, y);   // means of images:
//       // x[N, H, W, C], y[N, 1, 1, C]
//
// The order of a sum follows from the shapes. Terms are summed in segments, so
// that the error grows less with their number than in one long chain.

#ifndef NN_KERNELS_REDUCTION_H_
#define NN_KERNELS_REDUCTION_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct ReductionKernels {
  // y = (the sum of x over the axes along which y has extent 1) / divisor; y
  // has the rank of x, and its extents along all other axes. Sums without terms
  // are 0.
  Op<absl::Status(In x, double divisor, Out y)> SumAxes{"SumAxes"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = ReductionKernels;
    VisitOps<K>(visit, &K::SumAxes);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_REDUCTION_H_
