#include "nn/kernels/indexing.h"

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/check_indices.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

// Letters: those of nn/kernels/indexing.h.

namespace troupe::nn::cuda {
namespace {

// --- Sort: short axes by counting, long ones by a bitonic network ---
//
// Both use a total order, by value and then by place, so that the result does
// not depend on the algorithm. Batcher 1968, doi:10.1145/1468075.1468121.

// Limit on the elements of an axis whose ranks are counted, by comparing each
// element with all others: one launch.
constexpr std::int64_t kCountedMax = 1024;

// Whether p, at place p_place, comes before q. No comparison with a NaN holds.
__device__ __forceinline__ bool ComesBefore(bool descending, float p,
                                            std::int64_t p_place, float q,
                                            std::int64_t q_place) {
  const float low = descending ? q : p, high = descending ? p : q;
  if (low < high) return true;
  if (low > high) return false;
  const bool low_is_nan = low != low, high_is_nan = high != high;
  if (low_is_nan != high_is_nan) return high_is_nan;
  return p_place < q_place;
}

// A thread counts the elements before its own, which are its rank.
template <typename T>
struct RankBody {
  bool descending;
  std::int64_t K, J, I;
  const T* x;
  T* y;
  std::int64_t* index;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const std::int64_t i = at % I, k = at / I % K, o = at / (I * K);
    const T* const from = x + o * K * I + i;
    const float mine = Widen(from[k * I]);
    std::int64_t rank = 0;
    for (std::int64_t other = 0; other < K; ++other) {
      rank += ComesBefore(descending, Widen(from[other * I]), other, mine, k);
    }
    if (rank >= J) return;
    y[(o * J + rank) * I + i] = from[k * I];
    index[(o * J + rank) * I + i] = k;
  }
};

// Values and places of columns that are padded to P, a power of 2. Places from
// K on are padding, which stays behind all elements.
struct Network {
  bool descending;
  std::int64_t K, P;
  float* values;         // [columns, P]
  std::int64_t* places;  // [columns, P]
};

template <typename T>
struct LoadBody {
  Network network;
  std::int64_t I;
  const T* x;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const std::int64_t column = at / network.P, k = at % network.P;
    const std::int64_t o = column / I, i = column % I;
    const bool real = k < network.K;
    network.values[at] = real ? Widen(x[(o * network.K + k) * I + i]) : 0.0f;
    network.places[at] = k;
  }
};

// Orders one pair of elements `distance` apart, within runs of `run` elements
// of which every other one is sorted backwards.
struct ExchangeBody {
  Network network;
  std::int64_t run, distance;

  template <int kCount>
  __device__ void At(std::int64_t pair) const {
    const std::int64_t half = network.P / 2;
    const std::int64_t column = pair / half, q = pair % half;
    const std::int64_t low = q / distance * 2 * distance + q % distance;
    float* const values = network.values + column * network.P + low;
    std::int64_t* const places = network.places + column * network.P + low;
    const std::int64_t first = places[0], second = places[distance];
    const bool padding = first >= network.K || second >= network.K;
    const bool in_order = padding
                              ? first < second
                              : ComesBefore(network.descending, values[0],
                                            first, values[distance], second);
    const bool forwards = (low & run) == 0;
    if (in_order == forwards) return;
    const float value = values[0];
    values[0] = values[distance];
    values[distance] = value;
    places[0] = second;
    places[distance] = first;
  }
};

template <typename T>
struct StoreBody {
  Network network;
  std::int64_t J, I;
  const T* x;
  T* y;
  std::int64_t* index;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const std::int64_t i = at % I, j = at / I % J, o = at / (I * J);
    const std::int64_t place = network.places[(o * I + i) * network.P + j];
    y[at] = x[(o * network.K + place) * I + i];
    index[at] = place;
  }
};

template <typename T>
absl::Status SortLong(const CudaOps& cuda, bool descending, In x, Tensor& y,
                      const Tensor& index) {
  const std::int64_t K = x.dim(1), I = x.dim(2), columns = x.dim(0) * I;
  std::int64_t P = 1;
  while (P < K) P *= 2;
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor values,
      Tensor::Create({columns, P}, DType::kF32, *cuda.allocator));
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor places,
      Tensor::Create({columns, P}, DType::kI64, *cuda.allocator));
  const Network network{descending, K, P, Data<float>(values),
                        Data<std::int64_t>(places)};
  TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
      "SortAxis.Load", cuda.stream, columns * P,
      /*aligned=*/false, LoadBody<T>{network, I, Data<T>(x)}));
  for (std::int64_t run = 2; run <= P; run *= 2) {
    for (std::int64_t distance = run / 2; distance > 0; distance /= 2) {
      TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
          "SortAxis.Exchange", cuda.stream, columns * P / 2,
          /*aligned=*/false, ExchangeBody{network, run, distance}));
    }
  }
  return ForEachElement<1>("SortAxis.Store", cuda.stream, y.numel(),
                           /*aligned=*/false,
                           StoreBody<T>{network, y.dim(1), I, Data<T>(x),
                                        Data<T>(y), Data<std::int64_t>(index)});
}

struct SortAxis {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, bool descending, In x, Tensor& y,
                          const Tensor& index) {
    if (y.numel() == 0) return absl::OkStatus();
    const std::int64_t K = x.dim(1);
    if (K > kCountedMax) return SortLong<T>(cuda, descending, x, y, index);
    const RankBody<T> body{descending,
                           K,
                           y.dim(1),
                           x.dim(2),
                           Data<T>(x),
                           Data<T>(y),
                           Data<std::int64_t>(index)};
    return ForEachElement<1>("SortAxis", cuda.stream, x.numel(),
                             /*aligned=*/false, body);
  }
};

// --- Gather and scatter ---

// Where the index of an element (o, j, i) is.
struct IndexPlace {
  std::int64_t J, o_step, j_step, i_step;
  const std::int64_t* indices;

  __device__ std::int64_t At(std::int64_t o, std::int64_t j,
                             std::int64_t i) const {
    return indices[o * o_step + j * j_step + i * i_step];
  }
};

IndexPlace PlaceOf(const Tensor& index) {
  const std::int64_t J = index.dim(1), width = index.dim(2);
  return {J, index.dim(0) == 1 ? 0 : J * width, width, width == 1 ? 0 : 1,
          Data<std::int64_t>(index)};
}

// The first block checks the indices. Elements of wrong indices are zeros.
template <typename Word>
__global__ void __launch_bounds__(kElementThreads)
    GatherKernel(std::int64_t count, std::int64_t K, std::int64_t I,
                 IndexPlace index, std::int64_t indices, const Word* x, Word* y,
                 DataError* error) {
  if (blockIdx.x == 0) {
    CheckIndices<kElementThreads>(indices, index.indices, kAxisIndex, K, error);
    return;
  }
  const std::int64_t step =
      static_cast<std::int64_t>(gridDim.x - 1) * blockDim.x;
  for (std::int64_t at =
           static_cast<std::int64_t>(blockIdx.x - 1) * blockDim.x + threadIdx.x;
       at < count; at += step) {
    const std::int64_t i = at % I, j = at / I % index.J, o = at / (I * index.J);
    const std::int64_t k = index.At(o, j, i);
    y[at] = k >= 0 && k < K ? x[(o * K + k) * I + i] : Word{0};
  }
}

template <typename Word>
absl::Status GatherWords(const CudaOps& cuda, In x, In index, const Tensor& y) {
  base::LaunchShape shape = GridOf(y.numel());
  ++shape.grid.x;
  return base::Launch("GatherAxis", GatherKernel<Word>, shape, cuda.stream,
                      y.numel(), x.dim(1), x.dim(2), PlaceOf(index),
                      index.numel(), static_cast<const Word*>(x.device_data()),
                      static_cast<Word*>(y.device_data()), cuda.error);
}

absl::Status GatherAxis(const CudaOps& cuda, In x, In index, Tensor& y) {
  if (y.numel() == 0) return absl::OkStatus();
  switch (SizeOf(x.dtype())) {
    case 1:
      return GatherWords<std::uint8_t>(cuda, x, index, y);
    case 2:
      return GatherWords<std::uint16_t>(cuda, x, index, y);
    case 4:
      return GatherWords<std::uint32_t>(cuda, x, index, y);
    default:
      return GatherWords<std::uint64_t>(cuda, x, index, y);
  }
}

// A thread adds the elements of one column (o, i) to f32 sums[O, K, I], one
// after the other: sums are in ascending order of J, without atomics.
template <typename T>
struct ScatterBody {
  std::int64_t K, I;
  IndexPlace index;
  const T* x;
  float* sums;

  template <int kCount>
  __device__ void At(std::int64_t column) const {
    const std::int64_t o = column / I, i = column % I;
    for (std::int64_t j = 0; j < index.J; ++j) {
      const std::int64_t k = index.At(o, j, i);
      if (k < 0 || k >= K) continue;  // forward has reported it
      sums[(o * K + k) * I + i] += Widen(x[(o * index.J + j) * I + i]);
    }
  }
};

// Computes sums = y if gradients accumulate, or zeros; and y = sums.
template <typename T>
struct FirstSumsBody {
  bool accumulate;
  const T* y;
  float* sums;
  template <int kCount>
  __device__ void At(std::int64_t i) const {
    sums[i] = accumulate ? Widen(y[i]) : 0.0f;
  }
};
template <typename T>
struct RoundSumsBody {
  const float* sums;
  T* y;
  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Round(sums[i], y[i]);
  }
};

struct ScatterAddAxis {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, const Tensor& index,
                          bool accumulate, Tensor& y) {
    if (y.numel() == 0) return absl::OkStatus();
    constexpr bool kInPlace = std::is_same_v<T, float>;
    Tensor sums = y;
    if constexpr (!kInPlace) {
      TROUPE_ASSIGN_OR_RETURN(
          sums, Tensor::Create(y.shape(), DType::kF32, *cuda.allocator));
    }
    float* const to = Data<float>(sums);
    if (!kInPlace || !accumulate) {
      TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
          "ScatterAddAxis.First", cuda.stream, y.numel(), /*aligned=*/false,
          FirstSumsBody<T>{accumulate, Data<T>(y), to}));
    }
    if (x.numel() > 0) {
      TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
          "ScatterAddAxis", cuda.stream, y.dim(0) * y.dim(2),
          /*aligned=*/false,
          ScatterBody<T>{y.dim(1), y.dim(2), PlaceOf(index), Data<T>(x), to}));
    }
    if (kInPlace) return absl::OkStatus();
    return ForEachElement<1>("ScatterAddAxis.Round", cuda.stream, y.numel(),
                             /*aligned=*/false,
                             RoundSumsBody<T>{to, Data<T>(y)});
  }
};

// --- Cumulative sums, in f64 ---

// A block computes the sums of one column, kElementThreads elements at a time
// (Hillis and Steele 1986, doi:10.1145/7902.7903).
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    CumulativeSumKernel(std::int64_t columns, std::int64_t K, std::int64_t I,
                        bool from_last, const T* x, T* y) {
  __shared__ double sums[2][kElementThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t column = blockIdx.x; column < columns;
       column += gridDim.x) {
    const std::int64_t first = column / I * K * I + column % I;
    double before = 0;  // sum of the elements of earlier rounds
    for (std::int64_t begin = 0; begin < K; begin += kElementThreads) {
      const std::int64_t k = begin + thread;
      const std::int64_t at = first + (from_last ? K - 1 - k : k) * I;
      int now = 0;
      sums[now][thread] = k < K ? Widen(x[at]) : 0.0;
      __syncthreads();
      for (int distance = 1; distance < kElementThreads; distance *= 2) {
        double sum = sums[now][thread];
        if (thread >= distance) sum += sums[now][thread - distance];
        now = 1 - now;
        sums[now][thread] = sum;
        __syncthreads();
      }
      if (k < K) Round(before + sums[now][thread], y[at]);
      before += sums[now][kElementThreads - 1];
      __syncthreads();  // `sums` may be overwritten
    }
  }
}

struct CumulativeSum {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, bool from_last, In x,
                          Tensor& y) {
    const std::int64_t columns = x.dim(0) * x.dim(2);
    if (y.numel() == 0) return absl::OkStatus();
    base::LaunchShape shape;
    shape.grid =
        dim3(static_cast<unsigned>(std::min(columns, kElementBlocksMax)));
    shape.block = dim3(kElementThreads);
    return base::Launch("CumulativeSum", CumulativeSumKernel<T>, shape,
                        cuda.stream, columns, x.dim(1), x.dim(2), from_last,
                        static_cast<const T*>(Data<T>(x)), Data<T>(y));
  }
};

}  // namespace

template <>
void BindFamily(IndexingKernels& ops, CudaOps* state) {
  BindFloating<SortAxis>(ops.SortAxis, state);
  ops.GatherAxis.Bind<GatherAxis>(state);
  BindFloating<ScatterAddAxis>(ops.ScatterAddAxis, state);
  BindFloating<CumulativeSum>(ops.CumulativeSum, state);
}

}  // namespace troupe::nn::cuda
