// Kernels that copy elements into another order in memory.
//
//   status = kernels.NhwcToNchw(x, y);

#ifndef NN_KERNELS_LAYOUT_H_
#define NN_KERNELS_LAYOUT_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct LayoutKernels {
  // y[N, C, H, W] from x[N, H, W, C]
  Op<absl::Status(In x, Out y)> NhwcToNchw{"NhwcToNchw"};
  // y[N, H, W, C] from x[N, C, H, W]
  Op<absl::Status(In x, Out y)> NchwToNhwc{"NchwToNhwc"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = LayoutKernels;
    VisitOps<K>(visit, &K::NhwcToNchw, &K::NchwToNhwc);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_LAYOUT_H_
