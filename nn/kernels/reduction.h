// Kernels of sums over axes, and of largest and smallest elements.
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

  // y[O, I] = the largest (or smallest) elements of x[O, K, I] over K > 0, and
  // index[O, I], i64, where each is: the first of equal ones. A NaN counts as
  // larger, and smaller, than any number, as in PyTorch.
  Op<absl::Status(bool largest, In x, Out y, FixedOut index)> ExtremeOfAxis{
      "ExtremeOfAxis"};
  // y[O, K, I] = x[O, I] at index[O, I] along K, and 0 elsewhere; index i64. An
  // index outside [0, K) places nothing.
  Op<absl::Status(In x, FixedIn index, Out y)> PlaceAlongAxis{"PlaceAlongAxis"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = ReductionKernels;
    VisitOps<K>(visit, &K::SumAxes, &K::ExtremeOfAxis, &K::PlaceAlongAxis);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_REDUCTION_H_
