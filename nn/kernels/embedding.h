// Kernels that look up rows of a table.
//
//   status = kernels.EmbeddingForward(rows, table, y);

#ifndef NN_KERNELS_EMBEDDING_H_
#define NN_KERNELS_EMBEDDING_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct EmbeddingKernels {
  // y[R, D] = table[rows[R], D]; rows i64. kOutOfRange names the row.
  Op<absl::Status(FixedIn rows, In table, Out y)> EmbeddingForward{
      "EmbeddingForward"};
  // dtable[rows[R], D] (+)= dy[R, D], in ascending order of R.
  Op<absl::Status(FixedIn rows, In dy, bool accumulate, Grad dtable)>
      EmbeddingBackward{"EmbeddingBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = EmbeddingKernels;
    VisitOps<K>(visit, &K::EmbeddingForward, &K::EmbeddingBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_EMBEDDING_H_
