// Kernels of two-dimensional pooling: x[N, H, W, C] to y[N, P, Q, C].
//
//   status = kernels.MaxPool2dForward(window, x, y, argmax);

#ifndef NN_KERNELS_POOL2D_H_
#define NN_KERNELS_POOL2D_H_

#include <cstdint>

#include "nn/kernels/op.h"
#include "nn/kernels/window2d.h"

namespace troupe::nn {

// What the sum of a window is divided by.
enum class AvgDivisor : std::uint8_t {
  // The pixels in it, with those in the padding, which count as zeros, and
  // without those beyond it (PyTorch's count_include_pad=True).
  kPaddedImage,
  kImage,  // those of the image alone
};

// y's extents say how many windows there are: the last ones may hang over the
// padding (PyTorch's ceil_mode). Each begins in the image or before it. Windows
// of pooling have no dilation.
struct Pool2dKernels {
  // `argmax` i32, of y's shape: h * W + w of the winner within its image and
  // channel; the first of equals in row order, and the last NaN before all, as
  // in PyTorch.
  Op<absl::Status(const Window2d& window, In x, Out y, FixedOut argmax)>
      MaxPool2dForward{"MaxPool2dForward"};
  Op<absl::Status(const Window2d& window, In dy, FixedIn argmax, Out dx)>
      MaxPool2dBackward{"MaxPool2dBackward"};

  Op<absl::Status(const Window2d& window, AvgDivisor divisor, In x, Out y)>
      AvgPool2dForward{"AvgPool2dForward"};
  Op<absl::Status(const Window2d& window, AvgDivisor divisor, In dy, Out dx)>
      AvgPool2dBackward{"AvgPool2dBackward"};

  // Output row p is the mean of the rows [floor(p H / P), ceil((p + 1) H / P)),
  // and so are columns: P Q windows that cover the image, whatever its extents.
  Op<absl::Status(In x, Out y)> AdaptiveAvgPool2dForward{
      "AdaptiveAvgPool2dForward"};
  Op<absl::Status(In dy, Out dx)> AdaptiveAvgPool2dBackward{
      "AdaptiveAvgPool2dBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = Pool2dKernels;
    VisitOps<K>(visit, &K::MaxPool2dForward, &K::MaxPool2dBackward,
                &K::AvgPool2dForward, &K::AvgPool2dBackward,
                &K::AdaptiveAvgPool2dForward, &K::AdaptiveAvgPool2dBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_POOL2D_H_
