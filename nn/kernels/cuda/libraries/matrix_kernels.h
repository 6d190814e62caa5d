// Small kernels on matrices that stand around a library's products and
// convolutions: bias gradients, biases, transposed copies.
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
// Matrices are row-major, dense, and lie anywhere that their dtype may: f32,
// bf16 or f16, each operand its own. Empty ones are fine. Sums are in f32, in
// an order that follows from the shape alone, and are rounded once.
//
// Asynchronous: they return when the kernel is queued on `stream`. Errors:
// kInternal where the launch failed; names the kernel.

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

// sums[cols] (+)= the sum over the rows of x[rows, cols]. No rows: zeros.
// `scratch`: ColumnSumsScratchBytes() of device memory, 16-byte aligned.
absl::Status ColumnSums(MatrixShape shape, ConstElements x, bool accumulate,
                        Elements sums, void* scratch, cudaStream_t stream);
std::size_t ColumnSumsScratchBytes(MatrixShape shape);

// y[rows, cols] += v[cols] in every row.
absl::Status AddRowVector(MatrixShape shape, ConstElements v, Elements y,
                          cudaStream_t stream);

// `batch` matrices one behind the other: y[cols, rows] (+)= x[rows, cols]^T.
absl::Status TransposeEach(std::int64_t batch, MatrixShape shape,
                           ConstElements x, bool accumulate, Elements y,
                           cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATRIX_KERNELS_H_
