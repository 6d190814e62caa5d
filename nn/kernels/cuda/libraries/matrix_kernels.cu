#include "nn/kernels/cuda/libraries/matrix_kernels.h"

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/transpose.h"

namespace troupe::nn::cuda {
namespace {

// Returns fn(T{}) for the device element type T of f32, bf16 or f16.
template <typename Fn>
absl::Status ForMatrix(const char* kernel, DType dtype, Fn fn) {
  return ForFloating<void>(kernel, dtype, Device{DeviceType::kCuda, 0}, fn);
}

// --- ColumnSums: bands of rows, then the sums of the bands ---

constexpr int kSumCols = 32;  // columns of a block: a warp reads along a row
constexpr int kSumRows = 8;   // rows that a block reads at a time
constexpr std::int64_t kBandRowsMin = 256;
constexpr std::int64_t kBandsMax = 256;

std::int64_t BandsOf(MatrixShape shape) {
  return std::clamp<std::int64_t>(
      (shape.rows + kBandRowsMin - 1) / kBandRowsMin, 1, kBandsMax);
}

template <typename Sum>
__device__ __forceinline__ void WriteSum(float sum, bool accumulate, Sum& to) {
  Round(accumulate ? Widen(to) + sum : sum, to);
}

// Writes of_band[band, cols] or, if there is one band, sums[cols].
template <typename T, typename Sum>
__global__ void __launch_bounds__(kSumCols* kSumRows)
    BandSumsKernel(MatrixShape shape, const T* x, float* of_band,
                   bool accumulate, Sum* sums) {
  __shared__ float of_row[kSumRows][kSumCols];
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
  const std::int64_t col =
      static_cast<std::int64_t>(blockIdx.x) * kSumCols + lane;
  const std::int64_t rows_of_band = (shape.rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = blockIdx.y * rows_of_band;
  const std::int64_t end =
      begin + rows_of_band < shape.rows ? begin + rows_of_band : shape.rows;
  float sum = 0;
  for (std::int64_t r = begin + row; r < end && col < shape.cols;
       r += kSumRows) {
    sum += Widen(x[r * shape.cols + col]);
  }
  of_row[row][lane] = sum;
  __syncthreads();
  if (row != 0 || col >= shape.cols) return;
  for (int i = 1; i < kSumRows; ++i) sum += of_row[i][lane];
  if (gridDim.y == 1) {
    WriteSum(sum, accumulate, sums[col]);
  } else {
    of_band[blockIdx.y * shape.cols + col] = sum;
  }
}

template <typename Sum>
struct AddBandsBody {
  int bands;
  std::int64_t cols;
  const float* of_band;
  bool accumulate;
  Sum* sums;

  template <int kCount>
  __device__ void At(std::int64_t col) const {
    float sum = 0;
    for (int band = 0; band < bands; ++band) sum += of_band[band * cols + col];
    WriteSum(sum, accumulate, sums[col]);
  }
};

template <typename T, typename Sum>
absl::Status SumColumns(MatrixShape shape, const T* x, bool accumulate,
                        Sum* sums, float* of_band, cudaStream_t stream) {
  const std::int64_t bands = BandsOf(shape);
  base::LaunchShape launch;
  launch.grid =
      dim3(static_cast<unsigned>((shape.cols + kSumCols - 1) / kSumCols),
           static_cast<unsigned>(bands));
  launch.block = dim3(kSumCols, kSumRows);
  TROUPE_RETURN_IF_ERROR(base::Launch("ColumnSums", BandSumsKernel<T, Sum>,
                                      launch, stream, shape, x, of_band,
                                      accumulate, sums));
  if (bands == 1) return absl::OkStatus();
  const AddBandsBody<Sum> body{static_cast<int>(bands), shape.cols, of_band,
                               accumulate, sums};
  return ForEachElement<1>("ColumnSums.Add", stream, shape.cols, false, body);
}

// --- AddRowVector ---

template <typename V, typename Y>
struct AddRowVectorBody {
  std::int64_t cols;
  const V* v;
  Y* y;

  // A vector never crosses rows: cols is a multiple of kCount.
  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Numbers<float, kCount> sum = Load<kCount>(y + i);
    const Numbers<float, kCount> added = Load<kCount>(v + i % cols);
    for (int k = 0; k < kCount; ++k) sum.at[k] += added.at[k];
    Store(sum, y + i);
  }
};

// --- TransposeEach ---

struct Convert {
  template <typename From, typename To>
  __device__ void operator()(From from, To& to) const {
    Round(Widen(from), to);
  }
};

struct ConvertAndAdd {
  template <typename From, typename To>
  __device__ void operator()(From from, To& to) const {
    Round(Widen(to) + Widen(from), to);
  }
};

}  // namespace

std::size_t ColumnSumsScratchBytes(MatrixShape shape) {
  const std::int64_t bands = BandsOf(shape);
  if (bands == 1) return 0;
  return static_cast<std::size_t>(bands * shape.cols) * sizeof(float);
}

absl::Status ColumnSums(MatrixShape shape, ConstElements x, bool accumulate,
                        Elements sums, void* scratch, cudaStream_t stream) {
  if (shape.cols == 0 || (shape.rows == 0 && accumulate)) {
    return absl::OkStatus();
  }
  return ForMatrix("ColumnSums", x.dtype, [&](auto from) {
    return ForMatrix("ColumnSums", sums.dtype, [&](auto to) {
      return SumColumns(shape, static_cast<const decltype(from)*>(x.data),
                        accumulate, static_cast<decltype(to)*>(sums.data),
                        static_cast<float*>(scratch), stream);
    });
  });
}

absl::Status AddRowVector(MatrixShape shape, ConstElements v, Elements y,
                          cudaStream_t stream) {
  return ForMatrix("AddRowVector", v.dtype, [&](auto from) {
    return ForMatrix("AddRowVector", y.dtype, [&](auto to) {
      using V = decltype(from);
      using Y = decltype(to);
      constexpr int kVector = std::max(kVectorOf<V>, kVectorOf<Y>);
      const AddRowVectorBody<V, Y> body{
          shape.cols, static_cast<const V*>(v.data), static_cast<Y*>(y.data)};
      const bool aligned =
          IsAligned(body.v) && IsAligned(body.y) && shape.cols % kVector == 0;
      return ForEachElement<kVector>("AddRowVector", stream,
                                     shape.rows * shape.cols, aligned, body);
    });
  });
}

absl::Status TransposeEach(std::int64_t batch, MatrixShape shape,
                           ConstElements x, bool accumulate, Elements y,
                           cudaStream_t stream) {
  return ForMatrix("TransposeEach", x.dtype, [&](auto from) {
    return ForMatrix("TransposeEach", y.dtype, [&](auto to) {
      const auto* in = static_cast<const decltype(from)*>(x.data);
      auto* out = static_cast<decltype(to)*>(y.data);
      return accumulate
                 ? TransposeBatch<ConvertAndAdd>("TransposeEach", stream, batch,
                                                 shape.rows, shape.cols, in,
                                                 out)
                 : TransposeBatch<Convert>("TransposeEach", stream, batch,
                                           shape.rows, shape.cols, in, out);
    });
  });
}

}  // namespace troupe::nn::cuda
