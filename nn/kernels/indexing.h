// Kernels that order the elements of an axis, and that move elements to and
// from indices of an axis.
//
//   status = kernels.SortAxis(/*descending=*/true, x, y, index);
//   status = kernels.GatherAxis(x, index, y);
//   status = kernels.ScatterAddAxis(dy, index, /*accumulate=*/false, dx);
//
// Letters: K elements along the axis of x, O and I those before and behind it;
// J indices. An `index` is i64[O or 1, J, I or 1]: extent 1 along O or I means
// that all of them share it. kOutOfRange names the first index outside [0, K);
// where it is found after the call, such indices are skipped, or give zeros.

#ifndef NN_KERNELS_INDEXING_H_
#define NN_KERNELS_INDEXING_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct IndexingKernels {
  // y[O, J, I] = the first J <= K elements of x[O, K, I] in ascending or
  // descending order along K, index[O, J, I] = where they are. Equal elements
  // keep their order. A NaN is larger than any number, as in PyTorch.
  Op<absl::Status(bool descending, In x, Out y, FixedOut index)> SortAxis{
      "SortAxis"};
  // y[O, J, I] = x[O, index, I]; x and y have one dtype (any).
  Op<absl::Status(FixedIn x, FixedIn index, FixedOut y)> GatherAxis{
      "GatherAxis"};
  // y[O, index, I] (+)= x[O, J, I]; equal indices add up in ascending order of
  // J. y has the K.
  Op<absl::Status(In x, FixedIn index, bool accumulate, Grad y)> ScatterAddAxis{
      "ScatterAddAxis"};
  // y[O, K, I] = the sums of x[O, K, I] up to each element along K, from the
  // first element on, or from the last one on. y may be x.
  Op<absl::Status(bool from_last, In x, Out y)> CumulativeSum{"CumulativeSum"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = IndexingKernels;
    VisitOps<K>(visit, &K::SortAxis, &K::GatherAxis, &K::ScatterAddAxis,
                &K::CumulativeSum);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_INDEXING_H_
