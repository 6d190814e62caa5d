// Transposes matrices by tiles in shared memory, so that reading and writing
// both run along rows.
//
//   status = TransposeBatch<KeepWord>("NhwcToNchw", stream, N, rows, cols, x,
//                                     y);
//
// Writes y[n][cols, rows] from x[n][rows, cols]; `Put()(from, to)` writes one
// element. x and y must not overlap.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_TRANSPOSE_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_TRANSPOSE_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"

namespace troupe::nn::cuda {

// Copies an element unchanged.
struct KeepWord {
  template <typename Word>
  __device__ void operator()(Word from, Word& to) const {
    to = from;
  }
};

inline constexpr int kTile = 32;
inline constexpr int kTileRowsAtOnce = 8;

template <typename Put, typename From, typename To>
__global__ void __launch_bounds__(kTile* kTileRowsAtOnce)
    TransposeKernel(std::int64_t batch, std::int64_t rows, std::int64_t cols,
                    const From* x, To* y) {
  // The extra column avoids bank conflicts.
  __shared__ From tile[kTile][kTile + 1];
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t tiles_across = (cols + kTile - 1) / kTile;
  const std::int64_t row0 = blockIdx.x / tiles_across * kTile;
  const std::int64_t col0 = blockIdx.x % tiles_across * kTile;
  for (std::int64_t n = blockIdx.y; n < batch; n += gridDim.y) {
    const std::int64_t matrix = n * rows * cols;
    for (int i = static_cast<int>(threadIdx.y); i < kTile;
         i += kTileRowsAtOnce) {
      const std::int64_t row = row0 + i, col = col0 + lane;
      if (row < rows && col < cols) {
        tile[i][lane] = x[matrix + row * cols + col];
      }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.y); i < kTile;
         i += kTileRowsAtOnce) {
      const std::int64_t row = row0 + lane, col = col0 + i;
      if (row < rows && col < cols) {
        Put()(tile[lane][i], y[matrix + col * rows + row]);
      }
    }
    __syncthreads();  // the next matrix overwrites the tile
  }
}

template <typename Put, typename From, typename To>
absl::Status TransposeBatch(base::KernelName name, cudaStream_t stream,
                            std::int64_t batch, std::int64_t rows,
                            std::int64_t cols, const From* x, To* y) {
  if (batch * rows * cols == 0) return absl::OkStatus();
  const std::int64_t tiles =
      (rows + kTile - 1) / kTile * ((cols + kTile - 1) / kTile);
  base::LaunchShape shape;
  shape.grid =
      dim3(static_cast<unsigned>(tiles),
           static_cast<unsigned>(std::min<std::int64_t>(batch, kGridYMax)));
  shape.block = dim3(kTile, kTileRowsAtOnce);
  return base::Launch(name, TransposeKernel<Put, From, To>, shape, stream,
                      batch, rows, cols, x, y);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_TRANSPOSE_H_
