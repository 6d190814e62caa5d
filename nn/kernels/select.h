// Kernels that choose between two tensors element by element, and that compare
// integers. Floating numbers are compared by Binary (binary.h).
//
//   status = kernels.CompareIntegers(BinaryFunction::kEqual, a, b, mask);
//   status = kernels.Select(mask, x, y, z);

#ifndef NN_KERNELS_SELECT_H_
#define NN_KERNELS_SELECT_H_

#include "nn/kernels/element_functions.h"
#include "nn/kernels/op.h"
#include "nn/kernels/strided_loops.h"

namespace troupe::nn {

struct SelectKernels {
  // y = condition != 0 ? a : b, broadcast to the shape of y; a NaN is not 0. a,
  // b and y have one dtype of at least 2 bytes; the condition has any floating
  // dtype.
  Op<absl::Status(FixedIn condition, FixedIn a, FixedIn b, FixedOut y)> Select{
      "Select"};
  // y = f(a, b), a comparison: 1 or 0. a and b are i64, and broadcast to the
  // shape of y.
  Op<absl::Status(BinaryFunction f, FixedIn a, FixedIn b, Out y)>
      CompareIntegers{"CompareIntegers"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = SelectKernels;
    VisitOps<K>(visit, &K::Select, &K::CompareIntegers);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_SELECT_H_
