// Kernels of functions of two numbers, applied to the elements of two tensors
// that are broadcast to one shape.
//
//   status = kernels.Binary(BinaryFunction::kMultiply, a, b, y);
//
// Tensors of one shape, a row vector [C] beside [..., C] and a scalar are
// limited by memory bandwidth only.

#ifndef NN_KERNELS_BINARY_H_
#define NN_KERNELS_BINARY_H_

#include "nn/kernels/element_functions.h"
#include "nn/kernels/op.h"
#include "nn/kernels/strided_loops.h"

namespace troupe::nn {

struct BinaryKernels {
  // y = f(a, b); y has the BroadcastShape() of a and b. y may be an operand of
  // the same shape.
  Op<absl::Status(BinaryFunction f, In a, In b, Out y)> Binary{"Binary"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = BinaryKernels;
    VisitOps<K>(visit, &K::Binary);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_BINARY_H_
