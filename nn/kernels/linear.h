// Kernels of linear layers, on matrices.
//
//   status = kernels.LinearForward(x, w, b, y);
//
// Letters: N batch, K features in, M features out. The bias and its gradient
// may be undefined.

#ifndef NN_KERNELS_LINEAR_H_
#define NN_KERNELS_LINEAR_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

// Terms [begin, end) of the sum that each element of a product is.
struct TermRange {
  std::int64_t begin = 0, end = 0;
};

struct LinearKernels {
  // y[N, M] = x[N, K] w[M, K]^T + b[M]
  Op<absl::Status(In x, In w, In b, Out y)> LinearForward{"LinearForward"};

  // dx[N, K] = dy[N, M] w[M, K]
  Op<absl::Status(In dy, In w, Out dx)> LinearBackwardInput{
      "LinearBackwardInput"};

  // dw[M, K] (+)= dy[N, M]^T x[N, K];  db[M] (+)= sum over N of dy.
  // Samples are added in ascending order within one kernel's fixed scheme.
  Op<absl::Status(In x, In dy, bool accumulate, Grad dw, Grad db)>
      LinearBackwardWeight{"LinearBackwardWeight"};

  // dw[R, K] = rows [begin, begin + R) of dy[N, M]^T x[N, K], with the same
  // bits as LinearBackwardWeight. Requires that Kernels::LinearGradientRows()
  // is not 0.
  Op<absl::Status(In x, In dy, std::int64_t begin, Out dw)>
      LinearBackwardWeightRows{"LinearBackwardWeightRows"};

  // Products of some terms alone, for sums in an order that does not depend on
  // how many ranks share them. Bits follow from the values of these terms:
  // other columns of x and w, or rows of w, change nothing. On hosts.
  // y[N, M] = x[N, terms of K] w[M, terms of K]^T
  Op<absl::Status(In x, In w, TermRange terms, Out y)> LinearForwardTerms{
      "LinearForwardTerms"};
  // dx[N, K] (+)= dy[N, terms of M] w[terms of M, K]
  Op<absl::Status(In dy, In w, TermRange terms, bool accumulate, Grad dx)>
      LinearBackwardInputTerms{"LinearBackwardInputTerms"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = LinearKernels;
    VisitOps<K>(visit, &K::LinearForward, &K::LinearBackwardInput,
                &K::LinearBackwardWeight, &K::LinearBackwardWeightRows,
                &K::LinearForwardTerms, &K::LinearBackwardInputTerms);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_LINEAR_H_
