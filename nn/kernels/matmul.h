// Kernels of batched products of matrices.
//
//   const MatMulForm form{/*transpose_a=*/false, /*transpose_b=*/true};
//   status = kernels.MatMul(form, q, k, scores);             // q k^T
//
// Letters: M rows, N columns, K terms of each sum.

#ifndef NN_KERNELS_MATMUL_H_
#define NN_KERNELS_MATMUL_H_

#include "nn/kernels/op.h"
#include "nn/kernels/strided_loops.h"

namespace troupe::nn {

struct MatMulForm {
  bool transpose_a = false;  // a is stored as [..., K, M]
  bool transpose_b = false;  // b is stored as [..., N, K]
};

struct MatMulKernels {
  // c[..., M, N] = a[..., M, K] b[..., K, N]. The axes before the last two are
  // broadcast to those of c (strided_loops.h); K = 0 gives zeros.
  Op<absl::Status(MatMulForm form, In a, In b, Out c)> MatMul{"MatMul"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = MatMulKernels;
    VisitOps<K>(visit, &K::MatMul);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_MATMUL_H_
