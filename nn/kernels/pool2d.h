// Kernels of two-dimensional pooling: x[N, H, W, C] to y[N, P, Q, C].
//
//   status = kernels.MaxPool2dForward(window, x, y, argmax);

#ifndef NN_KERNELS_POOL2D_H_
#define NN_KERNELS_POOL2D_H_

#include <cstdint>

#include "nn/kernels/op.h"
#include "nn/kernels/window2d.h"

namespace troupe::nn {

// Divisor of the sum of a window.
enum class AvgDivisor : std::uint8_t {
  // Number of pixels in it, including the padding, which counts as zeros, but
  // not those beyond it (PyTorch's count_include_pad=True).
  kPaddedImage,
  kImage,  // number of pixels inside the image
};

// y's extents determine the number of windows: the last ones may extend past
// the padding (PyTorch's ceil_mode). Each begins in the image or before it.
// Windows of pooling have no dilation.
struct Pool2dKernels {
  // `argmax` i32, of y's shape: h * W + w of the largest pixel within its image
  // and channel; the first of equals in row order, and the last NaN before all,
  // as in PyTorch.
  Op<absl::Status(const Window2d& window, In x, Out y, FixedOut argmax)>
      MaxPool2dForward{"MaxPool2dForward"};
  Op<absl::Status(const Window2d& window, In dy, FixedIn argmax, Out dx)>
      MaxPool2dBackward{"MaxPool2dBackward"};

  Op<absl::Status(const Window2d& window, AvgDivisor divisor, In x, Out y)>
      AvgPool2dForward{"AvgPool2dForward"};
  Op<absl::Status(const Window2d& window, AvgDivisor divisor, In dy, Out dx)>
      AvgPool2dBackward{"AvgPool2dBackward"};

  // Output row p is the mean of the rows [floor(p H / P), ceil((p + 1) H / P));
  // columns likewise: P Q windows that cover the image, whatever its extents.
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
