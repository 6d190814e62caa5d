// Kernels that compute each element from the elements at the same index. Any
// shape; an element gets the same bits wherever a range of a tensor begins.
//
//   status = kernels.ReluForward(x, y);

#ifndef NN_KERNELS_ELEMENTWISE_H_
#define NN_KERNELS_ELEMENTWISE_H_

#include <vector>

#include "nn/kernels/op.h"

namespace troupe::nn {

struct ElementwiseKernels {
  // y = max(x, 0); NaN stays NaN. y may be x.
  Op<absl::Status(In x, Out y)> ReluForward{"ReluForward"};
  // dx = y <= 0 ? 0 : dy; dy where y is NaN, as in PyTorch. dx may be dy.
  Op<absl::Status(In y, In dy, Out dx)> ReluBackward{"ReluBackward"};

  // y = x * factor[0]; `factor` f64, of one element or more. y may be x.
  Op<absl::Status(In x, FixedIn factor, Out y)> Scale{"Scale"};

  // count[0] += number of elements of x that are NaN or infinite; count f64.
  Op<absl::Status(In x, FixedOut count)> CountNonFinite{"CountNonFinite"};

  // y = a + b. y may be a or b. On every device also for f64: statistics.
  Op<absl::Status(In a, In b, Out y)> Add{"Add"};

  // y = value, rounded to nearest. kUnimplemented for an integer dtype that
  // cannot hold the value.
  Op<absl::Status(double value, FixedOut y)> Fill{"Fill"};

  // y = values, in order, rounded to nearest; y is f32 or f64, with the same
  // number of elements.
  Op<absl::Status(const std::vector<double>& values, FixedOut y)> SetValues{
      "SetValues"};

  // y = x, between any two floating dtypes, rounded to nearest; an integer x is
  // copied to the same dtype.
  Op<absl::Status(FixedIn x, FixedOut y)> Copy{"Copy"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = ElementwiseKernels;
    VisitOps<K>(visit, &K::ReluForward, &K::ReluBackward, &K::Scale,
                &K::CountNonFinite, &K::Add, &K::Fill, &K::SetValues, &K::Copy);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_ELEMENTWISE_H_
