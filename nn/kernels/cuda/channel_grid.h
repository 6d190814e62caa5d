// Kernels over rows x[R, C] in which each thread loops over rows of the same
// channels, so that values of the channels stay in its registers.
//
//   template <typename T>
//   struct Body {
//     template <int kCount>
//     struct Channels { float scale[kCount]; };
//     template <int kCount>
//     __device__ Channels<kCount> Prepare(std::int64_t c) const;
//     template <int kCount>                       // for ForEachChannelRow
//     __device__ void At(const Channels<kCount>& channels,
//                        std::int64_t i) const;
//     template <int kCount>                       // for SumChannels
//     __device__ void Add(const Channels<kCount>& channels, std::int64_t r,
//                         std::int64_t i, double* a, double* b) const;
//   };
//
// i = r C + c is the first of kCount elements of row r. SumChannels() computes
// two sums a[k] and b[k] of each channel in f64, in an order that follows from
// the shape alone: over a thread's rows of a band, over the threads of a block,
// then over the bands.

#ifndef NN_KERNELS_CUDA_CHANNEL_GRID_H_
#define NN_KERNELS_CUDA_CHANNEL_GRID_H_

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

namespace troupe::nn::cuda {

inline constexpr int kChannelThreads = 256;
inline constexpr int kChannelWidthMax = 32;

// Layout of a block: `width` threads along the channels, kChannelThreads /
// width along the rows. `bands` blocks share the rows.
struct ChannelGrid {
  std::int64_t rows, channels;
  int width;
  std::int64_t bands;

  __device__ std::int64_t rows_of_band() const {
    return (rows + bands - 1) / bands;
  }
};

inline ChannelGrid GridOfChannels(std::int64_t rows, std::int64_t channels,
                                  int vector, std::int64_t rows_of_thread) {
  const std::int64_t vectors = (channels + vector - 1) / vector;
  int width = 1;
  while (width < kChannelWidthMax && width < vectors) width *= 2;
  const std::int64_t columns = (vectors + width - 1) / width;
  const std::int64_t rows_of_block = kChannelThreads / width * rows_of_thread;
  constexpr std::int64_t kBlocks = 1024;  // enough to fill every GPU of today
  const std::int64_t most = std::max<std::int64_t>(1, kBlocks / columns);
  const std::int64_t bands = std::clamp<std::int64_t>(
      (rows + rows_of_block - 1) / rows_of_block, 1, most);
  return {rows, channels, width, bands};
}

inline base::LaunchShape ShapeOf(const ChannelGrid& grid, int vector) {
  const std::int64_t vectors = (grid.channels + vector - 1) / vector;
  base::LaunchShape shape;
  shape.grid =
      dim3(static_cast<unsigned>((vectors + grid.width - 1) / grid.width),
           static_cast<unsigned>(grid.bands));
  shape.block = dim3(kChannelThreads);
  return shape;
}

// The first channel of a thread of a ChannelGrid, and its range of rows.
struct ChannelThread {
  __device__ ChannelThread(const ChannelGrid& grid, int vector)
      : column(static_cast<int>(threadIdx.x) % grid.width),
        row(static_cast<int>(threadIdx.x) / grid.width),
        step(kChannelThreads / grid.width),
        c((static_cast<std::int64_t>(blockIdx.x) * grid.width + column) *
          vector),
        begin(blockIdx.y * grid.rows_of_band() + row),
        end(blockIdx.y * grid.rows_of_band() + grid.rows_of_band()) {
    if (end > grid.rows) end = grid.rows;
  }

  int column, row, step;
  std::int64_t c, begin, end;
};

template <int kVector, typename Body>
__global__ void __launch_bounds__(kChannelThreads)
    ChannelRowsKernel(ChannelGrid grid, Body body) {
  const ChannelThread at(grid, kVector);
  if (at.c >= grid.channels) return;
  const auto channels = body.template Prepare<kVector>(at.c);
  for (std::int64_t r = at.begin; r < at.end; r += at.step) {
    body.template At<kVector>(channels, r * grid.channels + at.c);
  }
}

// Runs `body` on all rows, kVector channels at a time if `vectors`.
template <int kVector, typename Body>
absl::Status ForEachChannelRow(base::KernelName name, cudaStream_t stream,
                               std::int64_t rows, std::int64_t channels,
                               bool vectors, const Body& body) {
  if (rows == 0 || channels == 0) return absl::OkStatus();
  const int vector = vectors ? kVector : 1;
  const ChannelGrid grid =
      GridOfChannels(rows, channels, vector, /*rows_of_thread=*/4);
  return base::Launch(
      name,
      vectors ? ChannelRowsKernel<kVector, Body> : ChannelRowsKernel<1, Body>,
      ShapeOf(grid, vector), stream, grid, body);
}

// Writes the sums of each band to of_band[bands, 2, C].
template <int kVector, typename Body>
__global__ void __launch_bounds__(kChannelThreads)
    ChannelSumsKernel(ChannelGrid grid, Body body, double* of_band) {
  __shared__ double of_thread[2][kVector * kChannelThreads];
  const ChannelThread at(grid, kVector);
  const int columns = grid.width * kVector;
  double a[kVector] = {}, b[kVector] = {};
  if (at.c < grid.channels) {
    const auto channels = body.template Prepare<kVector>(at.c);
    for (std::int64_t r = at.begin; r < at.end; r += at.step) {
      body.template Add<kVector>(channels, r, r * grid.channels + at.c, a, b);
    }
  }
  for (int k = 0; k < kVector; ++k) {
    const int place = at.row * columns + at.column * kVector + k;
    of_thread[0][place] = a[k];
    of_thread[1][place] = b[k];
  }
  __syncthreads();
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * grid.width * kVector;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * columns;
       i += kChannelThreads) {
    const int which = i / columns, column = i % columns;
    if (first + column >= grid.channels) continue;
    double sum = 0;
    for (int row = 0; row < at.step; ++row) {
      sum += of_thread[which][row * columns + column];
    }
    of_band[(blockIdx.y * 2 + which) * grid.channels + first + column] = sum;
  }
}

inline constexpr int kBandCols = 32;
inline constexpr int kBandRows = 8;

// Writes sums[2 C + 1]: the sums over all bands, and the number of rows.
template <int kCols, int kRows>
__global__ void __launch_bounds__(kCols* kRows)
    AddChannelBandsKernel(ChannelGrid grid, const double* of_band,
                          double* sums) {
  __shared__ double of_row[kRows][kCols];
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
  const std::int64_t width = 2 * grid.channels;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kCols + lane;
  double sum = 0;
  for (std::int64_t band = row; band < grid.bands && i < width; band += kRows) {
    sum += of_band[band * width + i];
  }
  of_row[row][lane] = sum;
  __syncthreads();
  if (row != 0) return;
  for (int other = 1; other < kRows; ++other) sum += of_row[other][lane];
  if (i < width) sums[i] = sum;
  if (i == width) sums[i] = static_cast<double>(grid.rows);
}

// Computes sums f64 [2 C + 1]: the body's sums a and b over all rows, and the
// number of rows.
template <int kVector, typename Body>
absl::Status SumChannels(base::KernelName name, const CudaOps& cuda,
                         std::int64_t rows, std::int64_t channels, bool vectors,
                         const Body& body, double* sums) {
  const int vector = vectors ? kVector : 1;
  const ChannelGrid grid =
      GridOfChannels(rows, channels, vector, /*rows_of_thread=*/16);
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor of_band,
      Tensor::Create({grid.bands, 2 * channels}, DType::kF64, *cuda.allocator));
  double* const bands = Data<double>(of_band);
  TROUPE_RETURN_IF_ERROR(base::Launch(
      name,
      vectors ? ChannelSumsKernel<kVector, Body> : ChannelSumsKernel<1, Body>,
      ShapeOf(grid, vector), cuda.stream, grid, body, bands));
  base::LaunchShape shape;
  shape.grid =
      dim3(static_cast<unsigned>((2 * channels + kBandCols) / kBandCols));
  shape.block = dim3(kBandCols, kBandRows);
  return base::Launch("AddChannelBands",
                      AddChannelBandsKernel<kBandCols, kBandRows>, shape,
                      cuda.stream, grid, bands, sums);
}

// Writes the gradients of a weight (sums b) and a bias (sums a).
template <typename T>
struct WeightGradientBody {
  std::int64_t channels;
  const double* sums;
  bool accumulate;
  T* dw;  // may be null
  T* db;  // may be null

  __device__ void Write(double sum, T* to) const {
    Round(accumulate ? static_cast<double>(Widen(*to)) + sum : sum, *to);
  }
  template <int kCount>
  __device__ void At(std::int64_t c) const {
    if (dw != nullptr) Write(sums[channels + c], dw + c);
    if (db != nullptr) Write(sums[c], db + c);
  }
};

template <typename T>
absl::Status WriteWeightGradients(base::KernelName name, cudaStream_t stream,
                                  std::int64_t channels, const double* sums,
                                  bool accumulate, const Tensor& dw,
                                  const Tensor& db) {
  const WeightGradientBody<T> body{channels, sums, accumulate,
                                   DataOrNull<T>(dw), DataOrNull<T>(db)};
  return ForEachElement<1>(name, stream, channels, /*aligned=*/false, body);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_CHANNEL_GRID_H_
