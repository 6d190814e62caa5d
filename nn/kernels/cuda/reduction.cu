#include "nn/kernels/reduction.h"

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {
namespace {

// Sums y[outer, inner] over `terms` of x[outer, terms, inner]. With several
// bands of equally many terms, the result is y[outer, bands, inner].
struct Sums {
  std::int64_t outer, terms, inner;
  std::int64_t bands;
  float divisor;
};

constexpr int kThreads = 256;
constexpr int kSumCols = 32;  // columns of a block: a warp reads along a row
constexpr int kSumRows = 8;   // rows that a block reads at a time
// Terms for each band, up to kBandsMax bands of a sum.
constexpr std::int64_t kBandTermsMin = 2048;
constexpr std::int64_t kBandsMax = 256;
constexpr std::int64_t kBlocksMax = 1 << 20;

std::int64_t BandsOf(std::int64_t terms) {
  return std::clamp<std::int64_t>((terms + kBandTermsMin - 1) / kBandTermsMin,
                                  1, kBandsMax);
}

// The terms [begin, end) of a band.
struct Band {
  std::int64_t begin, end;
};

__device__ __forceinline__ Band BandAt(const Sums& sums, std::int64_t band) {
  const std::int64_t size = (sums.terms + sums.bands - 1) / sums.bands;
  const std::int64_t begin = band * size;
  const std::int64_t end =
      begin + size < sums.terms ? begin + size : sums.terms;
  return {begin, end};
}

// Sums adjacent terms; a block computes a band.
template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    SumRowsKernel(Sums sums, const From* x, To* y) {
  for (std::int64_t at = blockIdx.x; at < sums.outer * sums.bands;
       at += gridDim.x) {
    const From* row = x + at / sums.bands * sums.terms;
    const Band band = BandAt(sums, at % sums.bands);
    double sum = 0;
    for (std::int64_t i = band.begin + threadIdx.x; i < band.end;
         i += kThreads) {
      sum += static_cast<double>(Widen(row[i]));
    }
    sum = MergeBlock<kThreads>(sum, AddValues());
    if (threadIdx.x == 0) {
      Round(static_cast<float>(sum) / sums.divisor, y[at]);
    }
  }
}

// Sums terms that are `inner` elements apart; a block computes kSumCols columns
// of a band.
template <typename From, typename To>
__global__ void __launch_bounds__(kSumCols* kSumRows)
    SumColumnsKernel(Sums sums, const From* x, To* y) {
  __shared__ double of_row[kSumRows][kSumCols];
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
  const std::int64_t blocks_across = (sums.inner + kSumCols - 1) / kSumCols;
  const std::int64_t blocks = sums.outer * sums.bands * blocks_across;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::int64_t col = block % blocks_across * kSumCols + lane;
    const std::int64_t at = block / blocks_across;
    const From* terms = x + at / sums.bands * sums.terms * sums.inner;
    const Band band = BandAt(sums, at % sums.bands);
    double sum = 0;
    for (std::int64_t i = band.begin + row; i < band.end && col < sums.inner;
         i += kSumRows) {
      sum += static_cast<double>(Widen(terms[i * sums.inner + col]));
    }
    __syncthreads();  // all threads have read the sums of the last round
    of_row[row][lane] = sum;
    __syncthreads();
    if (row != 0 || col >= sums.inner) continue;
    for (int i = 1; i < kSumRows; ++i) sum += of_row[i][lane];
    Round(static_cast<float>(sum) / sums.divisor, y[at * sums.inner + col]);
  }
}

template <typename From, typename To>
absl::Status LaunchSums(cudaStream_t stream, const Sums& sums, const From* x,
                        To* y) {
  const std::int64_t rows = sums.outer * sums.bands;
  if (rows * sums.inner == 0) return absl::OkStatus();
  base::LaunchShape shape;
  if (sums.inner == 1) {
    shape.grid = dim3(static_cast<unsigned>(std::min(rows, kBlocksMax)));
    shape.block = dim3(kThreads);
    return base::Launch("SumAxes.Rows", SumRowsKernel<From, To>, shape, stream,
                        sums, x, y);
  }
  const std::int64_t blocks = rows * ((sums.inner + kSumCols - 1) / kSumCols);
  shape.grid = dim3(static_cast<unsigned>(std::min(blocks, kBlocksMax)));
  shape.block = dim3(kSumCols, kSumRows);
  return base::Launch("SumAxes.Columns", SumColumnsKernel<From, To>, shape,
                      stream, sums, x, y);
}

// Computes the sums over all terms, in one launch or, with bands, in two.
template <typename From, typename To>
absl::Status SumMiddle(const CudaOps& cuda, Sums sums, const From* x, To* y) {
  sums.bands = BandsOf(sums.terms);
  if (sums.bands == 1) return LaunchSums(cuda.stream, sums, x, y);
  TROUPE_ASSIGN_OR_RETURN(const Tensor of_bands,
                          Tensor::Create({sums.outer, sums.bands, sums.inner},
                                         DType::kF32, *cuda.allocator));
  float* const partial = Data<float>(of_bands);
  const Sums all{sums.outer, sums.bands, sums.inner, /*bands=*/1, sums.divisor};
  sums.divisor = 1;
  TROUPE_RETURN_IF_ERROR(LaunchSums(cuda.stream, sums, x, partial));
  return LaunchSums(cuda.stream, all, partial, y);
}

// The first run of adjacent axes that are summed over, as x[outer, terms,
// inner].
struct FirstRun {
  std::int64_t outer = 1, terms = 1, inner = 1;
  int next = 0;      // first axis after the run
  bool last = true;  // whether no axis after the run is summed over
};

FirstRun RunFrom(const Shape& x, const Shape& y, int axis) {
  FirstRun run;
  const auto summed = [&](int i) { return x[i] != 1 && y[i] == 1; };
  for (int i = 0; i < axis; ++i) run.outer *= y[i];
  for (; axis < x.rank() && !summed(axis); ++axis) run.outer *= x[axis];
  for (; axis < x.rank() && (x[axis] == 1 || summed(axis)); ++axis) {
    run.terms *= x[axis];
  }
  run.next = axis;
  for (; axis < x.rank(); ++axis) {
    run.inner *= x[axis];
    run.last = run.last && !summed(axis);
  }
  return run;
}

// Sums over the runs of axes one after another, in order. Intermediate results
// are f32.
struct SumAxes {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, double divisor,
                          Tensor& y) {
    FirstRun run = RunFrom(x.shape(), y.shape(), 0);
    Sums sums{run.outer, run.terms, run.inner, 1, static_cast<float>(divisor)};
    if (run.last) return SumMiddle(cuda, sums, Data<T>(x), Data<T>(y));
    sums.divisor = 1;
    TROUPE_ASSIGN_OR_RETURN(Tensor from, Partial(cuda, run));
    TROUPE_RETURN_IF_ERROR(
        SumMiddle(cuda, sums, Data<T>(x), Data<float>(from)));
    while (true) {
      run = RunFrom(x.shape(), y.shape(), run.next);
      sums = {run.outer, run.terms, run.inner, 1, 1};
      if (run.last) break;
      TROUPE_ASSIGN_OR_RETURN(const Tensor to, Partial(cuda, run));
      TROUPE_RETURN_IF_ERROR(
          SumMiddle(cuda, sums, Data<float>(from), Data<float>(to)));
      from = to;
    }
    sums.divisor = static_cast<float>(divisor);
    return SumMiddle(cuda, sums, Data<float>(from), Data<T>(y));
  }

 private:
  static absl::StatusOr<Tensor> Partial(const CudaOps& cuda,
                                        const FirstRun& run) {
    return Tensor::Create({run.outer, run.inner}, DType::kF32, *cuda.allocator);
  }
};

// Returns whether `x` takes the place of `best`. A NaN takes it from a number,
// and keeps it.
__device__ __forceinline__ bool Beats(bool largest, float x, float best) {
  if (best != best) return false;
  return largest ? !(x <= best) : !(x >= best);
}

// A thread computes one output; threads side by side read adjacent elements if
// inner > 1.
template <typename T>
struct ExtremeBody {
  bool largest;
  std::int64_t terms, inner;
  const T* x;
  T* y;
  std::int64_t* index;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const T* const from = x + at / inner * terms * inner + at % inner;
    std::int64_t best = 0;
    float value = Widen(from[0]);
    for (std::int64_t k = 1; k < terms; ++k) {
      const float next = Widen(from[k * inner]);
      if (!Beats(largest, next, value)) continue;
      value = next;
      best = k;
    }
    y[at] = from[best * inner];
    index[at] = best;
  }
};

// The candidate of a thread for the extreme of a row.
struct Extreme {
  float value;
  std::int64_t index;  // negative: none
};

// A warp computes the extreme of adjacent terms.
constexpr int kWarp = 32;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ExtremeOfRowsKernel(bool largest, std::int64_t rows, std::int64_t terms,
                        const T* x, T* y, std::int64_t* index) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ Extreme found[kWarps][kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  // All warps of a block run equally many rounds, so that all reach the
  // barriers.
  for (std::int64_t first = blockIdx.x * std::int64_t{kWarps}; first < rows;
       first += step) {
    const std::int64_t row = first + warp;
    const T* const from = x + row * terms;
    Extreme best{0, -1};
    if (row < rows) {
      for (std::int64_t k = lane; k < terms; k += kWarp) {
        const float next = Widen(from[k]);
        if (best.index >= 0 && !Beats(largest, next, best.value)) continue;
        best = {next, k};
      }
    }
    found[warp][lane] = best;
    __syncthreads();
    if (lane == 0 && row < rows) {
      for (int other = 1; other < kWarp; ++other) {
        const Extreme next = found[warp][other];
        if (next.index < 0) continue;
        const bool beats = Beats(largest, next.value, best.value);
        const bool ties = !beats && !Beats(largest, best.value, next.value);
        if (beats || (ties && next.index < best.index)) best = next;
      }
      y[row] = from[best.index];
      index[row] = best.index;
    }
    __syncthreads();  // `found` may be overwritten
  }
}

// Rows from this length on are shared among the threads of a warp.
constexpr std::int64_t kSharedTermsMin = 64;

struct ExtremeOfAxis {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, bool largest, In x, Tensor& y,
                          const Tensor& index) {
    const std::int64_t terms = x.dim(1), inner = x.dim(2), count = y.numel();
    if (count == 0) return absl::OkStatus();
    std::int64_t* const at = Data<std::int64_t>(index);
    if (inner == 1 && terms >= kSharedTermsMin) {
      base::LaunchShape shape;
      constexpr std::int64_t kWarps = kThreads / kWarp;
      shape.grid = dim3(static_cast<unsigned>(
          std::min((count + kWarps - 1) / kWarps, kBlocksMax)));
      shape.block = dim3(kThreads);
      return base::Launch("ExtremeOfAxis.Rows", ExtremeOfRowsKernel<T>, shape,
                          cuda.stream, largest, count, terms,
                          static_cast<const T*>(Data<T>(x)), Data<T>(y), at);
    }
    const ExtremeBody<T> body{largest,    terms,      inner,
                              Data<T>(x), Data<T>(y), at};
    return ForEachElement<1>("ExtremeOfAxis", cuda.stream, count,
                             /*aligned=*/false, body);
  }
};

template <typename T>
struct PlaceBody {
  std::int64_t terms, inner;
  const T* x;
  const std::int64_t* index;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const std::int64_t from = at / (terms * inner) * inner + at % inner;
    if (index[from] == at / inner % terms) {
      y[at] = x[from];
    } else {
      Round(0.0f, y[at]);
    }
  }
};

struct PlaceAlongAxis {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, const Tensor& index,
                          Tensor& y) {
    const PlaceBody<T> body{y.dim(1), y.dim(2), Data<T>(x),
                            Data<std::int64_t>(index), Data<T>(y)};
    return ForEachElement<1>("PlaceAlongAxis", cuda.stream, y.numel(),
                             /*aligned=*/false, body);
  }
};

}  // namespace

template <>
void BindFamily(ReductionKernels& ops, CudaOps* state) {
  BindFloating<SumAxes>(ops.SumAxes, state);
  BindFloating<ExtremeOfAxis>(ops.ExtremeOfAxis, state);
  BindFloating<PlaceAlongAxis>(ops.PlaceAlongAxis, state);
}

}  // namespace troupe::nn::cuda
