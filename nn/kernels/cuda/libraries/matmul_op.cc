#include "nn/kernels/cuda/libraries/linear.h"
#include "nn/kernels/matmul.h"

namespace troupe::nn::cuda {
namespace {

// Computes the products of a batch one after another.
absl::Status MatMul(LibraryOps& gpu, MatMulForm form, In a, In b, Tensor& c) {
  MatmulSpec spec;
  spec.rows = c.dim(-2), spec.cols = c.dim(-1);
  spec.depth = a.dim(form.transpose_a ? -2 : -1);
  spec.transpose_a = form.transpose_a;
  spec.transpose_b = form.transpose_b;
  if (c.numel() == 0) return absl::OkStatus();
  if (spec.depth == 0) return AddNothing(gpu, /*accumulate=*/false, c);
  const Shape of_a = {a.dim(-2), a.dim(-1)}, of_b = {b.dim(-2), b.dim(-1)};
  const StridedLoops loops = BroadcastMatrices(c.shape(), a.shape(), b.shape());
  const std::int64_t products = loops.numel();
  for (std::int64_t i = 0; i < products; ++i) {
    std::int64_t at_a = 0, at_b = 0, left = i;
    for (int axis = loops.rank - 1; axis >= 0; --axis) {
      const std::int64_t index = left % loops.extent[axis];
      left /= loops.extent[axis];
      at_a += index * loops.a[axis];
      at_b += index * loops.b[axis];
    }
    Tensor product =
        c.FlatView(i * spec.rows * spec.cols, {spec.rows, spec.cols});
    TROUPE_RETURN_IF_ERROR(Multiply(gpu, spec, a.FlatView(at_a, of_a),
                                    b.FlatView(at_b, of_b), /*bias=*/Tensor(),
                                    product));
  }
  return absl::OkStatus();
}

}  // namespace

void BindMatMul(MatMulKernels& ops, LibraryOps* state) {
  BindLibrary<MatMul>(state, ops.MatMul);
}

}  // namespace troupe::nn::cuda
