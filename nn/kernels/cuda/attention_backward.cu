#include <cstdint>

#include "nn/kernels/cuda/attention_call.h"

// The backward pass of FlashAttention-2 (Dao 2023, arXiv:2307.08691), in two
// kernels, so that no two blocks add to one gradient: blocks of the first own
// queries and loop over keys, blocks of the second own keys and loop over
// queries. Letters are those of nn/kernels/attention.h.

namespace troupe::nn::cuda {
namespace {

// Computes delta[N, Hq, T] = dy . y, one warp for each element.
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    DeltaKernel(AttentionGrid size, HeadArray<const T> y, HeadArray<const T> dy,
                float* delta) {
  const std::int64_t warp = ThreadOfGrid() / kWarpThreads;
  const std::int64_t warps = ThreadsOfGrid() / kWarpThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  for (std::int64_t i = warp; i < size.heads * size.T; i += warps) {
    const std::int64_t head = i / size.T, t = i % size.T;
    const std::int64_t offset = head % size.Hq * size.D + t * y.row;
    const T* a = y.Of(head / size.Hq, offset).at;
    const T* b = dy.Of(head / size.Hq, offset).at;
    float sum = 0;
    for (int d = lane; d < size.D; d += kWarpThreads) {
      sum = fmaf(Widen(a[d]), Widen(b[d]), sum);
    }
#pragma unroll
    for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
      sum += __shfl_xor_sync(kWholeWarp, sum, lanes);
    }
    if (lane == 0) delta[i] = sum;
  }
}

// The gradient dy, and results of the forward pass and of DeltaKernel().
template <typename T>
struct Made {
  HeadArray<const T> dy;
  const float* lse;
  const float* delta;
};

// Returns the probability p of a query t and a key s from their score, and
// replaces dy v^T in `ds` by the gradient of the score.
__device__ __forceinline__ float Probability(const AttentionGrid& size,
                                             bool sees, float score, float lse,
                                             float delta, float& ds) {
  const float p = sees ? expf(score * size.scale - lse) : 0.0f;
  ds = sees ? p * size.scale * (ds - delta) : 0.0f;
  return p;
}

// Writes the dropout factors to `block`, whose rows are keys and whose columns
// are queries. Synchronizes the warp before and after.
__device__ __forceinline__ void PutFactorsByKey(const AttentionGrid& size,
                                                const Drops& drops,
                                                std::int64_t head,
                                                int first_query, int first_key,
                                                float* block) {
  // Each lane computes one query and the keys of its warp.
  constexpr int kKeys = kWarpThreads / kThreadsOfRow * kRowsOfThread;
  static_assert(kWarpThreads == kTileRows && kKeys % 4 == 0);
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  __syncwarp();
  for (int key = warp * kKeys; key < (warp + 1) * kKeys; key += 4) {
    const Numbers<float, 4> factors =
        drops.Factors(size, head / size.Hq, head % size.Hq, first_query + lane,
                      first_key + key);
    for (int k = 0; k < 4; ++k) {
      block[(key + k) * kBlockRow + lane] = factors.at[k];
    }
  }
  __syncwarp();
}

// Computes dq. A block owns 32 queries of a head and loops over its keys.
template <int kWidth, int kVector, typename Drop, typename T>
__global__ void __launch_bounds__(kTileThreads)
    QueryGradientKernel(AttentionGrid size, Drop drop, AttentionArrays<T> in,
                        Made<T> made, HeadArray<T> dq) {
  drop = drop.Now();
  float* const queries = base::DynamicShared<float>();
  float* const dys = queries + kTileFloats<kWidth>;
  float* const keys = dys + kTileFloats<kWidth>;
  float* const values = keys + kTileFloats<kWidth>;
  float* const block = values + kTileFloats<kWidth>;
  const int first = static_cast<int>(blockIdx.x) * kTileRows;
  for (std::int64_t head = blockIdx.y; head < size.heads; head += gridDim.y) {
    const std::int64_t n = head / size.Hq, h = head % size.Hq;
    const auto k = in.k.Of(n, h / size.group * size.D);
    const auto v = in.v.Of(n, h / size.group * size.D);
    float lse[kRowsOfThread], delta[kRowsOfThread], one[kRowsOfThread];
    for (int i = 0; i < kRowsOfThread; ++i) {
      const int t = first + FirstRowOfThread() + i;
      lse[i] = t < size.T ? made.lse[head * size.T + t] : 0;
      delta[i] = t < size.T ? made.delta[head * size.T + t] : 0;
      one[i] = 1;
    }
    RowSums<kWidth> sums{};
    for (int tile = 0; tile < KeyTiles(size, first); ++tile) {
      const int first_key = tile * kTileRows;
      __syncthreads();  // all threads have read the tiles of the last round
      if (tile == 0) {
        LoadTile<kWidth, kVector>(in.q.Of(n, h * size.D), first, size.T, size.D,
                                  queries);
        LoadTile<kWidth, kVector>(made.dy.Of(n, h * size.D), first, size.T,
                                  size.D, dys);
      }
      LoadTile<kWidth, kVector>(k, first_key, size.S, size.D, keys);
      LoadTile<kWidth, kVector>(v, first_key, size.S, size.D, values);
      __syncthreads();
      float score[kRowsOfThread][kColsOfThread] = {};
      float ds[kRowsOfThread][kColsOfThread] = {};
      AddDots<kWidth>(queries, keys, score);
      AddDots<kWidth>(dys, values, ds);
      DropColumns(size, drop, n, h, first, first_key, block, ds);
      for (int i = 0; i < kRowsOfThread; ++i) {
        const int t = first + FirstRowOfThread() + i;
        for (int j = 0; j < kColsOfThread; ++j) {
          const int s = first_key + ColOfThread() + j * kThreadsOfRow;
          Probability(size, size.Sees(t, s), score[i][j], lse[i], delta[i],
                      ds[i][j]);
        }
      }
      __syncwarp();  // all lanes have read their rows of the last round
      PutBlock(ds, block);
      __syncwarp();
      AddRows<kWidth>(block, keys, sums);
    }
    StoreRows<kWidth, (kVector > 1)>(sums, one, dq.Of(n, h * size.D), first,
                                     size.T, size.D);
  }
}

// Adds to dk and dv of the 32 keys from `first` on, whose tiles are loaded, the
// terms of the 32 queries from `first_query` on of head `head`.
template <int kWidth, int kVector, typename Drop, typename T>
__device__ __forceinline__ void AddQueryTile(
    const AttentionGrid& size, const Drop& drop, const AttentionArrays<T>& in,
    const Made<T>& made, std::int64_t head, int first, int first_query,
    const float* keys, const float* values, float* shared, RowSums<kWidth>& dk,
    RowSums<kWidth>& dv) {
  float* const queries = shared;
  float* const dys = queries + kTileFloats<kWidth>;
  float* const block_p = dys + kTileFloats<kWidth>;
  float* const block_ds = block_p + kBlockFloats;
  const std::int64_t n = head / size.Hq, offset = head % size.Hq * size.D;
  __syncthreads();  // all threads have read the tiles of the last round
  LoadTile<kWidth, kVector>(in.q.Of(n, offset), first_query, size.T, size.D,
                            queries);
  LoadTile<kWidth, kVector>(made.dy.Of(n, offset), first_query, size.T, size.D,
                            dys);
  __syncthreads();
  float p[kRowsOfThread][kColsOfThread] = {};
  float ds[kRowsOfThread][kColsOfThread] = {};
  AddDots<kWidth>(keys, queries, p);
  AddDots<kWidth>(values, dys, ds);
  if constexpr (Drop::kAny) {
    PutFactorsByKey(size, drop, head, first_query, first, block_p);
    TakeFactors(block_p, ds);
  }
  for (int j = 0; j < kColsOfThread; ++j) {
    const int t = first_query + ColOfThread() + j * kThreadsOfRow;
    const float lse = t < size.T ? made.lse[head * size.T + t] : 0;
    const float delta = t < size.T ? made.delta[head * size.T + t] : 0;
    for (int i = 0; i < kRowsOfThread; ++i) {
      const int s = first + FirstRowOfThread() + i;
      p[i][j] =
          Probability(size, size.Sees(t, s), p[i][j], lse, delta, ds[i][j]);
    }
  }
  if constexpr (Drop::kAny) TakeFactors(block_p, p);
  PutBlock(p, block_p);
  PutBlock(ds, block_ds);
  __syncwarp();
  AddRows<kWidth>(block_p, dys, dv);
  AddRows<kWidth>(block_ds, queries, dk);
}

// Computes dk and dv. A block owns 32 keys of a head and loops over the queries
// of all heads that share it.
template <int kWidth, int kVector, typename Drop, typename T>
__global__ void __launch_bounds__(kTileThreads)
    KeyGradientKernel(AttentionGrid size, Drop drop, AttentionArrays<T> in,
                      Made<T> made, HeadArray<T> dk, HeadArray<T> dv) {
  drop = drop.Now();
  float* const keys = base::DynamicShared<float>();
  float* const values = keys + kTileFloats<kWidth>;
  float* const rest = values + kTileFloats<kWidth>;
  const int first = static_cast<int>(blockIdx.x) * kTileRows;
  const int query_tiles = (size.T + kTileRows - 1) / kTileRows;
  for (std::int64_t shared = blockIdx.y; shared < size.heads;
       shared += gridDim.y) {
    const std::int64_t n = shared / size.Hkv();
    const std::int64_t offset = shared % size.Hkv() * size.D;
    __syncthreads();  // all threads have read the tiles of the last head
    LoadTile<kWidth, kVector>(in.k.Of(n, offset), first, size.S, size.D, keys);
    LoadTile<kWidth, kVector>(in.v.Of(n, offset), first, size.S, size.D,
                              values);
    RowSums<kWidth> dkeys{}, dvalues{};
    for (int g = 0; g < size.group; ++g) {
      const std::int64_t head = shared * size.group + g;
      for (int tile = size.causal ? static_cast<int>(blockIdx.x) : 0;
           tile < query_tiles; ++tile) {
        AddQueryTile<kWidth, kVector>(size, drop, in, made, head, first,
                                      tile * kTileRows, keys, values, rest,
                                      dkeys, dvalues);
      }
    }
    float one[kRowsOfThread];
    for (float& factor : one) factor = 1;
    StoreRows<kWidth, (kVector > 1)>(dkeys, one, dk.Of(n, offset), first,
                                     size.S, size.D);
    StoreRows<kWidth, (kVector > 1)>(dvalues, one, dv.Of(n, offset), first,
                                     size.S, size.D);
  }
}

template <int kWidth, int kVector, typename Drop, typename T>
absl::Status LaunchGradients(const CudaOps& cuda,
                             const AttentionGrid& of_queries,
                             const AttentionGrid& of_keys, const Drop& drop,
                             const AttentionPlaces& at,
                             const AttentionPlaces& to, const Made<T>& made) {
  constexpr std::size_t kFloats = 4 * kTileFloats<kWidth>;
  if (of_queries.T > 0) {
    TROUPE_RETURN_IF_ERROR(base::Launch(
        "AttentionBackward.Queries",
        QueryGradientKernel<kWidth, kVector, Drop, T>,
        TileGrid(of_queries.T, of_queries.heads, kFloats + kBlockFloats),
        cuda.stream, of_queries, drop, ArraysOf<T>(at), made,
        ArrayOf<T>(to.q)));
  }
  return base::Launch(
      "AttentionBackward.Keys", KeyGradientKernel<kWidth, kVector, Drop, T>,
      TileGrid(of_keys.S, of_keys.heads, kFloats + 2 * kBlockFloats),
      cuda.stream, of_keys, drop, ArraysOf<T>(at), made, ArrayOf<T>(to.k),
      ArrayOf<T>(to.v));
}

struct AttentionBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const AttentionRule& rule, In q,
                          In k, In v, In y, In lse, In dy, Tensor& dq,
                          Tensor& dk, Tensor& dv) {
    const AttentionSizes size = SizesOfAttention(q, k, v, y);
    TROUPE_RETURN_IF_ERROR(CheckWidth(size.D));
    if (size.N * size.S * size.Hq * size.D == 0) return absl::OkStatus();
    const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
    const AttentionPlaces to = PlacesOfAttention(size, dq, dk, dv);
    const AttentionGrid of_queries = GridFor(rule, size, size.Hq);
    const AttentionGrid of_keys = GridFor(rule, size, size.Hkv);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor delta, Tensor::Create({size.N, size.Hq, size.T}, DType::kF32,
                                     *cuda.allocator));
    const AttentionHeads dense = {&y, 0, size.Hq * size.D};
    const Made<T> made = {ArrayOf<const T>({&dy, 0, dense.row}),
                          Data<float>(lse), Data<float>(delta)};
    if (size.T > 0) {
      TROUPE_RETURN_IF_ERROR(base::Launch(
          "AttentionBackward.Delta", DeltaKernel<T>,
          GridOf(of_queries.heads * size.T * kWarpThreads), cuda.stream,
          of_queries, ArrayOf<const T>(dense), made.dy, Data<float>(delta)));
    }
    const bool vectors = InVectors<T>(size, {&q, &k, &v, &dy, &dq, &dk, &dv});
    return ForDropout(rule, size, [&](auto drop) {
      return ForWidth<T>(size.D, vectors, [&](auto width, auto vector) {
        return LaunchGradients<width, vector>(cuda, of_queries, of_keys, drop,
                                              at, to, made);
      });
    });
  }
};

}  // namespace

void BindAttentionBackward(AttentionKernels& ops, CudaOps* state) {
  BindFloating<AttentionBackward>(ops.AttentionBackward, state);
}

}  // namespace troupe::nn::cuda
