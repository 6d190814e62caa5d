#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/check_indices.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

// Letters: R rows looked up, V rows of the table or of a rank's piece of it, D
// elements of a row.

namespace troupe::nn::cuda {
namespace {

// --- Forward: the first block checks the rows, a warp copies a row ---

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpThreads;

// The rows that a table has: V from `first` on, of a whole one of `whole`.
struct TableRows {
  std::int64_t first, V, whole;
};

// Copies the rows; writes zeros for a row outside the table.
template <int kVector, typename Word>
__global__ void __launch_bounds__(kThreads)
    CopyRowsKernel(std::int64_t R, TableRows of, std::int64_t D,
                   const std::int64_t* rows, const Word* table, Word* y,
                   DataError* error) {
  if (blockIdx.x == 0) {
    CheckIndices<kThreads>(R, rows, kEmbeddingRow, of.whole, error);
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x - 1) * kWarps;
  for (std::int64_t r =
           static_cast<std::int64_t>(blockIdx.x - 1) * kWarps + warp;
       r < R; r += warps) {
    const std::int64_t row = rows[r] - of.first;
    const bool inside = rows[r] >= of.first && row < of.V;
    for (std::int64_t d = lane * kVector; d < D; d += kWarpThreads * kVector) {
      Pack<Word, kVector> pack{};
      if (inside) pack = LoadPack<kVector>(table + row * D + d);
      StorePack(pack, y + r * D + d);
    }
  }
}

template <typename Word>
absl::Status CopyRows(const CudaOps& cuda, const char* op, In rows,
                      const TableRows& of, In table, Tensor& y) {
  const std::int64_t R = rows.numel(), D = table.dim(1);
  const auto* from = static_cast<const Word*>(table.device_data());
  auto* to = static_cast<Word*>(y.device_data());
  const bool vectors =
      IsAligned(from) && IsAligned(to) && D % kVectorOf<Word> == 0;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(
      1 + std::min(kElementBlocksMax, (R + kWarps - 1) / kWarps)));
  shape.block = dim3(kThreads);
  return base::Launch(
      op,
      vectors ? CopyRowsKernel<kVectorOf<Word>, Word> : CopyRowsKernel<1, Word>,
      shape, cuda.stream, R, of, D, Data<std::int64_t>(rows), from, to,
      cuda.error);
}

template <typename T>
using TableWord =
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;

struct EmbeddingForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In rows, In table, Tensor& y) {
    if (rows.numel() == 0) return absl::OkStatus();
    const TableRows all = {/*first=*/0, table.dim(0), table.dim(0)};
    return CopyRows<TableWord<T>>(cuda, "EmbeddingForward", rows, all, table,
                                  y);
  }
};

struct PieceEmbeddingForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In rows, std::int64_t first,
                          std::int64_t whole, In piece, Tensor& y) {
    if (rows.numel() == 0) return absl::OkStatus();
    const TableRows own = {first, piece.dim(0), whole};
    return CopyRows<TableWord<T>>(cuda, "PieceEmbeddingForward", rows, own,
                                  piece, y);
  }
};

// --- Backward: parts of the table, each with a list of its lookups ---
//
// The table is split into parts of consecutive rows. For each part, one block
// lists the lookups of its rows, in ascending order; then a warp for each row
// of the table adds the lookups of that row in the list. Sums are therefore in
// ascending order of R, without atomics. With few lookups there is one part,
// whose list is all lookups and is not written.

constexpr std::int64_t kPartsMax = 1024;
// Limit on the lookups without lists: every row of the table scans all of them.
constexpr std::int64_t kUnlistedRowsMax = 1024;
// Terms of a sum that are loaded at the same time.
constexpr int kTermsAtOnce = 8;

struct Parts {
  std::int64_t first;        // number of the table's first row in `rows`
  std::int64_t count;        // number of parts
  std::int64_t rows_of_one;  // rows of the table in each part
  std::int64_t* sizes;       // [count]: lookups in each part
  std::int64_t* lists;       // [R]: the lists of the parts, concatenated
};

// Calls visit(r, found) for each lookup r, in chunks of kThreads. `found`:
// whether rows[r] is in the block's part. Every thread of the block calls visit
// in every chunk.
template <typename Visit>
__device__ __forceinline__ void VisitPart(const Parts& parts, std::int64_t R,
                                          const std::int64_t* rows,
                                          Visit visit) {
  const std::int64_t begin = parts.first + blockIdx.x * parts.rows_of_one;
  const std::int64_t end = begin + parts.rows_of_one;
  for (std::int64_t chunk = 0; chunk < R; chunk += kThreads) {
    const std::int64_t r = chunk + threadIdx.x;
    visit(r, r < R && rows[r] >= begin && rows[r] < end);
  }
}

__global__ void __launch_bounds__(kThreads)
    CountPartsKernel(Parts parts, std::int64_t R, const std::int64_t* rows) {
  long long mine = 0;
  VisitPart(parts, R, rows, [&](std::int64_t, bool found) { mine += found; });
  mine = MergeBlock<kThreads>(mine, AddValues());
  if (threadIdx.x == 0) parts.sizes[blockIdx.x] = mine;
}

// Returns the index at which the part's list begins.
__device__ std::int64_t ListBegin(const Parts& parts, std::int64_t part) {
  long long before = 0;
  for (std::int64_t i = threadIdx.x; i < part; i += kThreads) {
    before += parts.sizes[i];
  }
  return MergeBlock<kThreads>(before, AddValues());
}

__global__ void __launch_bounds__(kThreads)
    ListPartsKernel(Parts parts, std::int64_t R, const std::int64_t* rows) {
  __shared__ int of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  std::int64_t next = ListBegin(parts, blockIdx.x);
  VisitPart(parts, R, rows, [&](std::int64_t r, bool found) {
    const unsigned lanes = __ballot_sync(kWholeWarp, found);
    if (lane == 0) of_warp[warp] = __popc(lanes);
    __syncthreads();
    int before = __popc(lanes & ((1u << lane) - 1)), all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += of_warp[w];
      all += of_warp[w];
    }
    if (found) parts.lists[next + before] = r;
    next += all;
    __syncthreads();  // all threads have read of_warp before the next chunk
  });
}

// Computes dtable[v] (+)= the sum over the lookups of first + v. If `lists` is
// null, there is one part, whose list is 0, 1, ... R - 1.
template <int kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    SumRowsKernel(Parts parts, std::int64_t R, std::int64_t V, std::int64_t D,
                  const std::int64_t* rows, const T* dy,
                  std::int64_t padding_row, bool accumulate, T* dtable) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const std::int64_t part = blockIdx.x;
  const bool listed = parts.lists != nullptr;
  const std::int64_t* list =
      listed ? parts.lists + ListBegin(parts, part) : nullptr;
  const std::int64_t size = listed ? parts.sizes[part] : R;
  const std::int64_t begin = part * parts.rows_of_one;
  const std::int64_t end =
      begin + parts.rows_of_one < V ? begin + parts.rows_of_one : V;
  const std::int64_t d =
      (static_cast<std::int64_t>(blockIdx.y) * kWarpThreads + lane) * kVector;
  // blockIdx.z and the warp select the rows of the part.
  const std::int64_t step = static_cast<std::int64_t>(gridDim.z) * kWarps;
  for (std::int64_t v = begin + blockIdx.z * kWarps + warp; v < end;
       v += step) {
    const std::int64_t wanted = parts.first + v;
    Numbers<float, kVector> sums{};
    if (accumulate && d < D) sums = Load<kVector>(dtable + v * D + d);
    for (std::int64_t chunk = 0; chunk < size; chunk += kWarpThreads) {
      const std::int64_t i = chunk + lane;
      const std::int64_t r = i >= size ? 0 : listed ? list[i] : i;
      unsigned own = __ballot_sync(
          kWholeWarp, i < size && rows[r] == wanted && wanted != padding_row);
      // A row with many lookups, such as the most frequent token of a text, is
      // one long sum: its terms are added in order, but several are loaded at
      // the same time.
      while (own != 0) {
        Numbers<float, kVector> terms[kTermsAtOnce];
        int count = 0;
#pragma unroll
        for (int t = 0; t < kTermsAtOnce; ++t) {
          if (own == 0) break;
          const std::int64_t from =
              __shfl_sync(kWholeWarp, r, __ffs(static_cast<int>(own)) - 1);
          if (d < D) terms[t] = Load<kVector>(dy + from * D + d);
          own &= own - 1;
          ++count;
        }
#pragma unroll
        for (int t = 0; t < kTermsAtOnce; ++t) {
          if (t >= count || d >= D) break;
#pragma unroll
          for (int k = 0; k < kVector; ++k) sums.at[k] += terms[t].at[k];
        }
      }
    }
    if (d < D) Store(sums, dtable + v * D + d);
  }
}

// Splits the table and lists the lookups of each part in `memory`
// i64[kPartsMax + R].
absl::Status ListParts(const CudaOps& cuda, In rows, std::int64_t V,
                       const Tensor& memory, Parts* parts) {
  const std::int64_t R = rows.numel();
  parts->rows_of_one = (V + kPartsMax - 1) / kPartsMax;
  parts->count = (V + parts->rows_of_one - 1) / parts->rows_of_one;
  parts->sizes = Data<std::int64_t>(memory);
  parts->lists = parts->sizes + kPartsMax;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(parts->count));
  shape.block = dim3(kThreads);
  TROUPE_RETURN_IF_ERROR(base::Launch("EmbeddingBackward.Count",
                                      CountPartsKernel, shape, cuda.stream,
                                      *parts, R, Data<std::int64_t>(rows)));
  return base::Launch("EmbeddingBackward.List", ListPartsKernel, shape,
                      cuda.stream, *parts, R, Data<std::int64_t>(rows));
}

struct PieceEmbeddingBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In rows, std::int64_t first,
                          In dy, std::int64_t padding_row, bool accumulate,
                          Tensor& dtable) {
    const std::int64_t R = rows.numel(), V = dtable.dim(0), D = dtable.dim(1);
    if (V * D == 0 || (R == 0 && accumulate)) return absl::OkStatus();
    Parts parts{first, 1, V, nullptr, nullptr};
    Tensor memory;
    if (R > kUnlistedRowsMax) {
      TROUPE_ASSIGN_OR_RETURN(
          memory,
          Tensor::Create({kPartsMax + R}, DType::kI64, *cuda.allocator));
      TROUPE_RETURN_IF_ERROR(ListParts(cuda, rows, V, memory, &parts));
    }
    const T* from = R > 0 ? Data<T>(dy) : nullptr;
    T* to = Data<T>(dtable);
    const bool vectors =
        IsAligned(from) && IsAligned(to) && D % kVectorOf<T> == 0;
    const std::int64_t width = kWarpThreads * (vectors ? kVectorOf<T> : 1);
    const std::int64_t warps = (parts.rows_of_one + kWarps - 1) / kWarps;
    base::LaunchShape shape;
    shape.grid =
        dim3(static_cast<unsigned>(parts.count),
             static_cast<unsigned>((D + width - 1) / width),
             static_cast<unsigned>(std::min(kElementBlocksMax, warps)));
    shape.block = dim3(kThreads);
    return base::Launch(
        "EmbeddingBackward",
        vectors ? SumRowsKernel<kVectorOf<T>, T> : SumRowsKernel<1, T>, shape,
        cuda.stream, parts, R, V, D, Data<std::int64_t>(rows), from,
        padding_row, accumulate, to);
  }
};

// The whole table is the only piece.
struct EmbeddingBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In rows, In dy,
                          std::int64_t padding_row, bool accumulate,
                          Tensor& dtable) {
    return PieceEmbeddingBackward::Run<T>(cuda, rows, /*first=*/0, dy,
                                          padding_row, accumulate, dtable);
  }
};

// --- Positions ---

template <typename T>
struct AddPositionsBody {
  std::int64_t sample;
  const T *x, *add;
  T* y;
  template <int kCount>
  __device__ void At(std::int64_t i) const {
    auto v = Load<kCount>(x + i);
    const auto a = Load<kCount>(add + i % sample);
#pragma unroll
    for (int k = 0; k < kCount; ++k) v.at[k] += a.at[k];
    Store(v, y + i);
  }
};

struct AddPositions {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, In table,
                          std::int64_t first, Tensor& y) {
    if (x.numel() == 0) return absl::OkStatus();
    const AddPositionsBody<T> body = {x.dim(1) * x.dim(2), Data<T>(x),
                                      Data<T>(table) + first * table.dim(1),
                                      Data<T>(y)};
    return ForEachElement<kVectorOf<T>>(
        "AddPositions", cuda.stream, x.numel(),
        IsAligned(body.x) && IsAligned(body.add) && IsAligned(body.y) &&
            body.sample % kVectorOf<T> == 0,
        body);
  }
};

// Computes the gradient of elements [begin, begin + sample) of the flat table;
// zeros for the rest, unless gradients accumulate.
template <typename T>
struct SumPositionsBody {
  std::int64_t N, sample, begin;
  bool accumulate;
  const T* dy;
  T* dtable;
  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const bool inside = i >= begin && i < begin + sample;
    if (accumulate && !inside) return;
    Numbers<float, kCount> sums{};
    if (accumulate) sums = Load<kCount>(dtable + i);
    for (std::int64_t n = 0; inside && n < N; ++n) {
      const auto v = Load<kCount>(dy + n * sample + i - begin);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sums.at[k] += v.at[k];
    }
    Store(sums, dtable + i);
  }
};

struct AddPositionsBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In dy, std::int64_t first,
                          bool accumulate, Tensor& dtable) {
    const std::int64_t N = dy.dim(0), sample = dy.dim(1) * dy.dim(2);
    const SumPositionsBody<T> body = {N,
                                      sample,
                                      first * dtable.dim(1),
                                      accumulate,
                                      N * sample > 0 ? Data<T>(dy) : nullptr,
                                      Data<T>(dtable)};
    return ForEachElement<kVectorOf<T>>(
        "AddPositionsBackward", cuda.stream, dtable.numel(),
        IsAligned(body.dy) && IsAligned(body.dtable) &&
            sample % kVectorOf<T> == 0 && body.begin % kVectorOf<T> == 0,
        body);
  }
};

}  // namespace

template <>
void BindFamily(EmbeddingKernels& ops, CudaOps* state) {
  BindFloating<EmbeddingForward>(ops.EmbeddingForward, state);
  BindFloating<EmbeddingBackward>(ops.EmbeddingBackward, state);
  BindFloating<PieceEmbeddingForward>(ops.PieceEmbeddingForward, state);
  BindFloating<PieceEmbeddingBackward>(ops.PieceEmbeddingBackward, state);
  BindFloating<AddPositions>(ops.AddPositions, state);
  BindFloating<AddPositionsBackward>(ops.AddPositionsBackward, state);
}

}  // namespace troupe::nn::cuda
