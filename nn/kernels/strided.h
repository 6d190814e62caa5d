// Copies of parts of tensors in another order: permutations of axes, slices,
// concatenation.
//
//   status = kernels.CopyStrided(loops, x, y);

#ifndef NN_KERNELS_STRIDED_H_
#define NN_KERNELS_STRIDED_H_

#include "nn/kernels/op.h"
#include "nn/kernels/strided_loops.h"

namespace troupe::nn {

struct StridedKernels {
  // y[b_begin + ...] = x[a_begin + ...] for all indices of the loops, in
  // elements of x and y in memory order; other elements of y stay. x and y have
  // one dtype (any) and do not overlap.
  Op<absl::Status(StridedLoops loops, FixedIn x, FixedOut y)> CopyStrided{
      "CopyStrided"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = StridedKernels;
    VisitOps<K>(visit, &K::CopyStrided);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_STRIDED_H_
