// Kernels of two-dimensional pooling: x[N, H, W, C] to y[N, P, Q, C].
//
//   status = kernels.MaxPool2dForward(window, x, y, argmax);

#ifndef NN_KERNELS_POOL2D_H_
#define NN_KERNELS_POOL2D_H_

#include "nn/kernels/op.h"
#include "nn/kernels/window2d.h"

namespace troupe::nn {

struct Pool2dKernels {
  // `argmax` i32, of y's shape: h * W + w of the winner within its image and
  // channel; the first of equals in row order, and the last NaN before all, as
  // in PyTorch.
  Op<absl::Status(const Window2d& window, In x, Out y, FixedOut argmax)>
      MaxPool2dForward{"MaxPool2dForward"};
  Op<absl::Status(const Window2d& window, In dy, FixedIn argmax, Out dx)>
      MaxPool2dBackward{"MaxPool2dBackward"};

  // Padding counts as zeros in the mean (PyTorch's count_include_pad=True).
  Op<absl::Status(const Window2d& window, In x, Out y)> AvgPool2dForward{
      "AvgPool2dForward"};
  Op<absl::Status(const Window2d& window, In dy, Out dx)> AvgPool2dBackward{
      "AvgPool2dBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = Pool2dKernels;
    VisitOps<K>(visit, &K::MaxPool2dForward, &K::MaxPool2dBackward,
                &K::AvgPool2dForward, &K::AvgPool2dBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_POOL2D_H_
