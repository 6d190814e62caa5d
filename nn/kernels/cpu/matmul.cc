#include "nn/kernels/matmul.h"

#include <algorithm>

#include "nn/kernels/cpu/linear.h"
#include "nn/kernels/cpu/outer_loops.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Computes c[M, N] of one pair of matrices, as the pass of a linear layer that
// reads its operands in place.
absl::Status Multiply(CpuDevice& cpu, MatMulForm form, const Tensor& a,
                      const Tensor& b, Tensor& c) {
  const Tensor none;
  Tensor no_bias_gradient;
  if (form.transpose_a) {
    return LinearBackwardWeight(cpu, /*x=*/b, /*dy=*/a, /*accumulate=*/false, c,
                                no_bias_gradient);
  }
  return form.transpose_b ? LinearForward(cpu, a, b, none, c)
                          : LinearBackwardInput(cpu, /*dy=*/a, /*w=*/b, c);
}

// Copies the transposed matrices of b, for the case that both operands are
// transposed.
absl::StatusOr<Tensor> TransposedMatrices(CpuDevice& cpu, const Tensor& b) {
  const std::int64_t N = b.dim(-2), K = b.dim(-1);
  Shape shape = b.shape();
  shape.set(shape.rank() - 2, K);
  shape.set(shape.rank() - 1, N);
  TROUPE_ASSIGN_OR_RETURN(Tensor copy,
                          Tensor::Create(shape, DType::kF32, cpu.allocator()));
  for (std::int64_t i = 0; i < b.numel(); i += N * K) {
    cpu.loops().transpose(N, K, b.data<float>() + i, copy.data<float>() + i);
  }
  return copy;
}

absl::Status MatMul(CpuDevice& cpu, MatMulForm form, In a, In b, Tensor& c) {
  const std::int64_t M = c.dim(-2), N = c.dim(-1);
  const std::int64_t K = a.dim(form.transpose_a ? -2 : -1);
  if (M * N * K == 0) {
    std::fill_n(c.data<float>(), c.numel(), 0.0f);
    return absl::OkStatus();
  }
  Tensor right = b.Detached();
  if (form.transpose_a && form.transpose_b) {
    TROUPE_ASSIGN_OR_RETURN(right, TransposedMatrices(cpu, b));
    form.transpose_b = false;
  }
  const Shape of_a = form.transpose_a ? Shape{K, M} : Shape{M, K};
  const Shape of_b = form.transpose_b ? Shape{N, K} : Shape{K, N};
  std::int64_t at_c = 0;
  absl::Status status;
  ForEachOuter(BroadcastMatrices(c.shape(), a.shape(), right.shape()),
               /*inner=*/0, [&](std::int64_t at_a, std::int64_t at_b) {
                 Tensor product = c.FlatView(at_c, {M, N});
                 status.Update(Multiply(cpu, form, a.FlatView(at_a, of_a),
                                        right.FlatView(at_b, of_b), product));
                 at_c += M * N;
               });
  return status;
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, MatMulKernels& ops) {
  BindF32<MatMul>(cpu, ops.MatMul);
}

}  // namespace troupe::nn::cpu
