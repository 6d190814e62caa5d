// Small matrix kernels that complement a library's products and convolutions:
// bias gradients, biases, transposed copies.
//
//   status = ColumnSums({rows, cols}, {DType::kBF16, dy},
//                       /*accumulate=*/true, {DType::kF32, db}, scratch,
//                       stream);
//   status = AddRowVector({rows, cols}, {DType::kBF16, bias},
//                         {DType::kBF16, y}, stream);
//   status = TransposeEach(O, {C, R * S}, {DType::kF32, w_OCRS},
//                          /*accumulate=*/false, {DType::kF32, w_ORSC},
//                          stream);
//
// Matrices are row-major and dense, and need only the alignment of their dtype:
// f32, bf16 or f16, which may differ between operands. They may be empty. Sums
// are in f32, in an order that follows from the shape alone, and are rounded
// once.
//
// Asynchronous: they return when the kernel is queued on `stream`. Errors:
// kInternal if the launch failed; names the kernel.

#ifndef NN_KERNELS_CUDA_LIBRARIES_MATRIX_KERNELS_H_
#define NN_KERNELS_CUDA_LIBRARIES_MATRIX_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::cuda {

struct MatrixShape {
  std::int64_t rows = 0, cols = 0;
};

// Elements in device memory.
struct ConstElements {
  DType dtype;
  const void* data;
};
struct Elements {
  DType dtype;
  void* data;
};

// Computes sums[cols] (+)= the sum over the rows of x[rows, cols]; zeros if
// there are no rows.
// `scratch`: ColumnSumsScratchBytes() of device memory, 16-byte aligned.
absl::Status ColumnSums(MatrixShape shape, ConstElements x, bool accumulate,
                        Elements sums, void* scratch, cudaStream_t stream);
std::size_t ColumnSumsScratchBytes(MatrixShape shape);

// Adds v[cols] to every row of y[rows, cols].
absl::Status AddRowVector(MatrixShape shape, ConstElements v, Elements y,
                          cudaStream_t stream);

// Computes y[cols, rows] (+)= x[rows, cols]^T for `batch` consecutive matrices.
absl::Status TransposeEach(std::int64_t batch, MatrixShape shape,
                           ConstElements x, bool accumulate, Elements y,
                           cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATRIX_KERNELS_H_
