// Kernels of softmax and its logarithm along the last axis.
//
//   status = kernels.SoftmaxForward(SoftmaxForm::kPlain, x, y);
//
// Letters: C elements of a row. Any rank above 0, C at least 1.

#ifndef NN_KERNELS_SOFTMAX_H_
#define NN_KERNELS_SOFTMAX_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

enum class SoftmaxForm : std::uint8_t {
  kPlain,  // e^(x - max x) / sum of them
  kLog,    // x - max x - ln(sum of e^(x - max x))
};

struct SoftmaxKernels {
  // y[..., C] of x[..., C]. y may be x.
  Op<absl::Status(SoftmaxForm form, In x, Out y)> SoftmaxForward{
      "SoftmaxForward"};
  // kPlain: dx = y (dy - sum(dy y)); kLog: dx = dy - e^y sum(dy); sums over the
  // row. dx may be dy.
  Op<absl::Status(SoftmaxForm form, In y, In dy, Out dx)> SoftmaxBackward{
      "SoftmaxBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = SoftmaxKernels;
    VisitOps<K>(visit, &K::SoftmaxForward, &K::SoftmaxBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_SOFTMAX_H_
