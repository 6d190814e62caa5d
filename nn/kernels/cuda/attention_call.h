// Shared by the forward and the backward pass of attention: the parameters of
// the kernels, and the choice of a kernel and its grid on the host.
//
//     return ForWidth<T>(size.D, InVectors<T>(size, {&q, &k, &v, &y}),
//         [&](auto width, auto vector) {
//           return base::Launch("AttentionForward", Kernel<width, vector, T>,
//                               TileGrid(size.T, heads, floats), stream, grid);
//         });
//
// Letters are those of nn/kernels/attention.h.

#ifndef NN_KERNELS_CUDA_ATTENTION_CALL_H_
#define NN_KERNELS_CUDA_ATTENTION_CALL_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "nn/kernels/attention.h"
#include "nn/kernels/cuda/attention_tile.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/philox_words.h"

namespace troupe::nn::cuda {

// Sizes and rule of a call, as the kernels take them.
struct AttentionGrid {
  int T, S, Hq, group, D;
  std::int64_t heads;  // N Hq, or N Hkv if blocks own keys
  bool causal;
  float scale;

  // Returns whether query t attends to key s.
  __device__ __forceinline__ bool Sees(int t, int s) const {
    return t < T && s < S && (!causal || s <= t);
  }
  __device__ __forceinline__ int Hkv() const { return Hq / group; }
};

// The parameter of kernels without dropout, in place of Drops.
struct NoDrops {
  static constexpr bool kAny = false;
  __device__ __forceinline__ NoDrops Now() const { return {}; }
};

// The dropout mask: drops probabilities and scales the rest.
struct Drops {
  static constexpr bool kAny = true;

  DeviceDraws draws;
  unsigned drop_below;
  float scale;
  int row_blocks;  // AttentionSizes::row_blocks()
  std::int64_t first_block;

  __device__ __forceinline__ Drops Now() const {
    Drops now = *this;
    now.draws = draws.Now();
    return now;
  }
  // Returns the factors of query t of head h for four keys from `key` on, a
  // multiple of 4. They have no meaning if the query or key does not exist.
  __device__ __forceinline__ Numbers<float, 4> Factors(
      const AttentionGrid& size, std::int64_t n, std::int64_t h, int t,
      int key) const {
    const uint4 words =
        draws.Block(n, first_block + (h * size.T + t) * row_blocks + key / 4);
    return {
        {Factor(words.x), Factor(words.y), Factor(words.z), Factor(words.w)}};
  }

 private:
  __device__ __forceinline__ float Factor(unsigned draw) const {
    return draw >= drop_below ? scale : 0.0f;
  }
};

// Multiplies value[i][j] by the factor of the query of row i and the key of
// column j. Overwrites the warp's rows of `block` with the factors, and
// synchronizes the warp before and after writing them.
__device__ __forceinline__ void DropColumns(
    const AttentionGrid&, const NoDrops&, std::int64_t, std::int64_t, int, int,
    float*, float (&)[kRowsOfThread][kColsOfThread]) {}
__device__ __forceinline__ void DropColumns(
    const AttentionGrid& size, const Drops& drops, std::int64_t n,
    std::int64_t h, int first_query, int first_key, float* block,
    float (&value)[kRowsOfThread][kColsOfThread]) {
  // Each of the eight threads of a row computes four keys.
  static_assert(4 * kThreadsOfRow == kTileRows);
  __syncwarp();
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int row = FirstRowOfThread() + i, col = 4 * ColOfThread();
    Store(drops.Factors(size, n, h, first_query + row, first_key + col),
          block + row * kBlockRow + col);
  }
  __syncwarp();
  TakeFactors(block, value);
}

template <typename T>
struct AttentionArrays {
  HeadArray<const T> q, k, v;
};

// Returns the number of key tiles that the tile of queries from `first` on
// attends to.
__device__ __forceinline__ int KeyTiles(const AttentionGrid& size, int first) {
  const int last = first + kTileRows;
  const int keys = size.causal && last < size.S ? last : size.S;
  return (keys + kTileRows - 1) / kTileRows;
}

inline constexpr std::int64_t kWidthMax = 128;

template <typename T>
HeadArray<T> ArrayOf(const AttentionHeads& heads) {
  return {Data<std::remove_const_t<T>>(*heads.tensor) + heads.first,
          heads.tensor->dim(1) * heads.row, heads.row};
}
template <typename T>
AttentionArrays<T> ArraysOf(const AttentionPlaces& at) {
  return {ArrayOf<const T>(at.q), ArrayOf<const T>(at.k),
          ArrayOf<const T>(at.v)};
}

// Returns whether heads may be accessed 16 bytes at a time: every head is
// aligned if the tensors are and D is a multiple of a vector.
template <typename T>
bool InVectors(const AttentionSizes& size,
               std::initializer_list<const Tensor*> tensors) {
  bool aligned = size.D % kVectorOf<T> == 0;
  for (const Tensor* t : tensors) {
    aligned = aligned && (!t->defined() || IsAligned(t->device_data()));
  }
  return aligned;
}

// Returns run(width, vector) with two integral constants: D rounded up to 32,
// 64 or 128, and the elements of one access.
template <typename T, typename Run>
absl::Status ForWidth(std::int64_t D, bool vectors, Run run) {
  const auto with = [&](auto width) {
    if (vectors) return run(width, std::integral_constant<int, kVectorOf<T>>());
    return run(width, std::integral_constant<int, 1>());
  };
  if (D <= 32) return with(std::integral_constant<int, 32>());
  if (D <= 64) return with(std::integral_constant<int, 64>());
  return with(std::integral_constant<int, 128>());
}

inline absl::Status CheckWidth(std::int64_t D) {
  if (D <= kWidthMax) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("attention on a GPU has heads of at most ", kWidthMax,
                   " elements, not ", D));
}

inline AttentionGrid GridFor(const AttentionRule& rule,
                             const AttentionSizes& size,
                             std::int64_t heads_of_sample) {
  return {static_cast<int>(size.T),
          static_cast<int>(size.S),
          static_cast<int>(size.Hq),
          static_cast<int>(size.group()),
          static_cast<int>(size.D),
          size.N * heads_of_sample,
          rule.causal,
          static_cast<float>(rule.scale)};
}

// Returns run(drops) with the Drops of the rule, or with NoDrops.
template <typename Run>
absl::Status ForDropout(const AttentionRule& rule, const AttentionSizes& size,
                        Run run) {
  if (!rule.dropout) return run(NoDrops());
  const DropoutMask& mask = *rule.dropout;
  return run(
      Drops{DeviceDraws(mask.draws, DataOrNull<std::int32_t>(mask.place)),
            mask.drop_below, static_cast<float>(mask.scale),
            static_cast<int>(size.row_blocks()),
            FirstBlock(rule, size, /*h=*/0, /*t=*/0)});
}

// Returns the grid with a block for each tile of `positions` of each head.
inline base::LaunchShape TileGrid(std::int64_t positions, std::int64_t heads,
                                  std::size_t shared_floats) {
  base::LaunchShape shape;
  shape.grid =
      dim3(static_cast<unsigned>((positions + kTileRows - 1) / kTileRows),
           static_cast<unsigned>(std::min(heads, kGridYMax)));
  shape.block = dim3(kTileThreads);
  shape.shared_bytes = shared_floats * sizeof(float);
  return shape;
}

// Binds the backward pass; BindFamily() calls it.
void BindAttentionBackward(AttentionKernels& ops, CudaOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_ATTENTION_CALL_H_
