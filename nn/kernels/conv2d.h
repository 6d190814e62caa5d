// Kernels of two-dimensional convolutions (cross-correlations, as in PyTorch).
//
//   status = kernels.Conv2dForward(window, x, w, b, y);
//
// Letters: N batch; C channels in, O channels out, G groups of channels, H W
// input pixels, P Q output pixels, R S filter rows and columns. Images are
// x[N, H, W, C] and y[N, P, Q, O]; weights are w[O, C / G, R, S], as in
// PyTorch, so the number of groups follows from the shapes (GroupsOf). Outputs
// of group g, channels [g O / G, (g + 1) O / G), depend on the inputs of group
// g alone. The bias b[O] and its gradient may be undefined.

#ifndef NN_KERNELS_CONV2D_H_
#define NN_KERNELS_CONV2D_H_

#include <cstdint>

#include "nn/kernels/op.h"
#include "nn/kernels/window2d.h"

namespace troupe::nn {

// Returns G of images x[N, H, W, C] and weights w[O, C / G, R, S].
inline std::int64_t GroupsOf(const Tensor& x, const Tensor& w) {
  return x.dim(3) / w.dim(1);
}

struct Conv2dKernels {
  Op<absl::Status(const Window2d& window, In x, In w, In b, Out y)>
      Conv2dForward{"Conv2dForward"};

  Op<absl::Status(const Window2d& window, In dy, In w, Out dx)>
      Conv2dBackwardInput{"Conv2dBackwardInput"};

  Op<absl::Status(const Window2d& window, In x, In dy, bool accumulate, Grad dw,
                  Grad db)>
      Conv2dBackwardWeight{"Conv2dBackwardWeight"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = Conv2dKernels;
    VisitOps<K>(visit, &K::Conv2dForward, &K::Conv2dBackwardInput,
                &K::Conv2dBackwardWeight);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_CONV2D_H_
