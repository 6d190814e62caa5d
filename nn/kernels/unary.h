// Kernels of functions of one number, applied to each element: activations, and
// the unary operations of arithmetic.
//
//   status = kernels.UnaryForward(UnaryFunction::kLeakyRelu, 0.01, x, y);
//
// Any shape. NaN stays NaN; infinities and arguments outside a function's
// domain give the value of the formula in element_functions.h in floating-point
// arithmetic, as in PyTorch.

#ifndef NN_KERNELS_UNARY_H_
#define NN_KERNELS_UNARY_H_

#include "nn/kernels/element_functions.h"
#include "nn/kernels/op.h"

namespace troupe::nn {

struct UnaryKernels {
  // y = f(x) with parameter p. y may be x.
  Op<absl::Status(UnaryFunction f, double p, In x, Out y)> UnaryForward{
      "UnaryForward"};
  // dx = f'(x) dy, where `saved` is y if SavesOutput(f), else x. dx may be dy.
  Op<absl::Status(UnaryFunction f, double p, In saved, In dy, Out dx)>
      UnaryBackward{"UnaryBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = UnaryKernels;
    VisitOps<K>(visit, &K::UnaryForward, &K::UnaryBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_UNARY_H_
