#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/attention_call.h"

// The forward pass of FlashAttention-2 (Dao 2023, arXiv:2307.08691) on tiles of
// 32 queries and 32 keys, in f32. A block computes 32 queries of a head and
// loops over the tiles of keys. Letters are those of nn/kernels/attention.h.

namespace troupe::nn::cuda {
namespace {

// The online softmax of the thread's rows: the largest score so far, and the
// sum of exponentials relative to it.
struct RowState {
  float largest[kRowsOfThread];
  float sum[kRowsOfThread];
};

// Turns scores into exponentials relative to the largest score so far, and
// rescales the sums of earlier tiles to it.
template <int kWidth>
__device__ __forceinline__ void SoftmaxTile(
    const AttentionGrid& size, int first_query, int first_key,
    float (&score)[kRowsOfThread][kColsOfThread], RowState& state,
    RowSums<kWidth>& sums) {
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int t = first_query + FirstRowOfThread() + i;
    float largest = state.largest[i];
    bool sees[kColsOfThread];
#pragma unroll
    for (int j = 0; j < kColsOfThread; ++j) {
      sees[j] = size.Sees(t, first_key + ColOfThread() + j * kThreadsOfRow);
      score[i][j] *= size.scale;
      if (sees[j]) largest = fmaxf(largest, score[i][j]);
    }
    largest = LargestOfRow(largest);
    // Before the first key, the largest score is minus infinity.
    const float factor =
        state.largest[i] == -INFINITY ? 0.0f : expf(state.largest[i] - largest);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kColsOfThread; ++j) {
      score[i][j] = sees[j] ? expf(score[i][j] - largest) : 0.0f;
      sum += score[i][j];
    }
    state.sum[i] = state.sum[i] * factor + SumOfRow(sum);
    state.largest[i] = largest;
    for (auto& four : sums.of[i]) {
      for (float& value : four.at) value *= factor;
    }
  }
}

template <int kWidth, int kVector, typename Drop, typename T>
__global__ void __launch_bounds__(kTileThreads)
    ForwardKernel(AttentionGrid size, Drop drop, AttentionArrays<T> in,
                  HeadArray<T> y, float* lse) {
  drop = drop.Now();
  float* const queries = base::DynamicShared<float>();
  float* const keys = queries + kTileFloats<kWidth>;
  float* const values = keys + kTileFloats<kWidth>;
  float* const block = values + kTileFloats<kWidth>;
  const int first = static_cast<int>(blockIdx.x) * kTileRows;
  for (std::int64_t head = blockIdx.y; head < size.heads; head += gridDim.y) {
    const std::int64_t n = head / size.Hq, h = head % size.Hq;
    const auto q = in.q.Of(n, h * size.D);
    const auto k = in.k.Of(n, h / size.group * size.D);
    const auto v = in.v.Of(n, h / size.group * size.D);
    RowState state;
    for (int i = 0; i < kRowsOfThread; ++i) {
      state.largest[i] = -INFINITY;
      state.sum[i] = 0;
    }
    RowSums<kWidth> sums{};
    for (int tile = 0; tile < KeyTiles(size, first); ++tile) {
      const int first_key = tile * kTileRows;
      __syncthreads();  // all threads have read the tiles of the last round
      if (tile == 0) {
        LoadTile<kWidth, kVector>(q, first, size.T, size.D, queries);
      }
      LoadTile<kWidth, kVector>(k, first_key, size.S, size.D, keys);
      LoadTile<kWidth, kVector>(v, first_key, size.S, size.D, values);
      __syncthreads();
      float score[kRowsOfThread][kColsOfThread] = {};
      AddDots<kWidth>(queries, keys, score);
      SoftmaxTile<kWidth>(size, first, first_key, score, state, sums);
      DropColumns(size, drop, n, h, first, first_key, block, score);
      __syncwarp();  // all lanes have read their rows of the last round
      PutBlock(score, block);
      __syncwarp();
      AddRows<kWidth>(block, values, sums);
    }
    float inverse[kRowsOfThread];
    for (int i = 0; i < kRowsOfThread; ++i) {
      const int t = first + FirstRowOfThread() + i;
      inverse[i] = 1 / state.sum[i];
      if (t < size.T && ColOfThread() == 0) {
        lse[head * size.T + t] = state.largest[i] + logf(state.sum[i]);
      }
    }
    StoreRows<kWidth, (kVector > 1)>(sums, inverse, y.Of(n, h * size.D), first,
                                     size.T, size.D);
  }
}

struct AttentionForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const AttentionRule& rule, In q,
                          In k, In v, Tensor& y, Tensor& lse) {
    const AttentionSizes size = SizesOfAttention(q, k, v, y);
    TROUPE_RETURN_IF_ERROR(CheckWidth(size.D));
    if (y.numel() == 0) return absl::OkStatus();
    const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
    const AttentionGrid grid = GridFor(rule, size, size.Hq);
    const bool vectors = InVectors<T>(size, {&q, &k, &v, &y});
    return ForDropout(rule, size, [&](auto drop) {
      return ForWidth<T>(size.D, vectors, [&](auto width, auto vector) {
        return base::Launch(
            "AttentionForward", ForwardKernel<width, vector, decltype(drop), T>,
            TileGrid(size.T, grid.heads, 3 * kTileFloats<width> + kBlockFloats),
            cuda.stream, grid, drop, ArraysOf<T>(at),
            ArrayOf<T>({&y, 0, size.Hq * size.D}), Data<float>(lse));
      });
    });
  }
};

}  // namespace

template <>
void BindFamily(AttentionKernels& ops, CudaOps* state) {
  BindFloating<AttentionForward>(ops.AttentionForward, state);
  BindAttentionBackward(ops, state);
}

}  // namespace troupe::nn::cuda
