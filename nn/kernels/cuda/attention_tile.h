// Building blocks of the attention kernels: tiles of kTileRows positions of a
// head in shared memory, as f32, and products of two tiles in the registers of
// a block.
//
//   LoadTile<kWidth, kVector>(head, first, count, D, tile);
//   __syncthreads();
//   float score[kRowsOfThread][kColsOfThread] = {};
//   AddDots<kWidth>(queries, keys, score);      // 32 x 32 of a block
//   PutBlock(score, block);
//   __syncwarp();
//   AddRows<kWidth>(block, values, sums);       // 32 x D of a block
//
// Eight threads of a block of kTileThreads own two rows: thread i owns rows
// 2 (i / 8) and 2 (i / 8) + 1, and of a square block the columns i % 8 + 8 j.
// A row therefore belongs to threads of one warp, only they read what they
// write, and neighbouring threads read different banks. Every sum is in
// ascending order.

#ifndef NN_KERNELS_CUDA_ATTENTION_TILE_H_
#define NN_KERNELS_CUDA_ATTENTION_TILE_H_

#include <cstdint>

#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {

inline constexpr int kTileRows = 32;
inline constexpr int kTileThreads = 128;
inline constexpr int kThreadsOfRow = 8;
inline constexpr int kRowsOfThread = kTileRows * kThreadsOfRow / kTileThreads;
inline constexpr int kColsOfThread = kTileRows / kThreadsOfRow;
// Padding of a row of a tile: 16 bytes, so that eight rows are in different
// banks.
inline constexpr int kPadFloats = 4;
inline constexpr int kBlockRow = kTileRows + kPadFloats;
inline constexpr int kBlockFloats = kTileRows * kBlockRow;
template <int kWidth>
inline constexpr int kTileFloats = kTileRows*(kWidth + kPadFloats);
// Number of groups of four floats of a row of D that a thread owns.
template <int kWidth>
inline constexpr int kFoursOfThread = kWidth / (4 * kThreadsOfRow);

// One head of one sample: position t begins at `at + t * row`.
template <typename T>
struct HeadRows {
  T* at;
  std::int64_t row;
};

// All heads of queries, keys or values.
template <typename T>
struct HeadArray {
  T* first;
  std::int64_t sample, row;  // strides of samples and positions, in elements

  __device__ __forceinline__ HeadRows<T> Of(std::int64_t n,
                                            std::int64_t offset) const {
    return {first + n * sample + offset, row};
  }
};

__device__ __forceinline__ int FirstRowOfThread() {
  return static_cast<int>(threadIdx.x) / kThreadsOfRow * kRowsOfThread;
}
__device__ __forceinline__ int ColOfThread() {
  return static_cast<int>(threadIdx.x) % kThreadsOfRow;
}

// Loads positions [first, first + kTileRows) of a head; zeros from position
// `count` on, and from element D on.
template <int kWidth, int kVector, typename T>
__device__ __forceinline__ void LoadTile(const HeadRows<const T>& head,
                                         int first, int count, int D,
                                         float* tile) {
  constexpr int kVectors = kWidth / kVector;
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kVectors;
       i += kTileThreads) {
    const int row = i / kVectors, d = i % kVectors * kVector;
    Numbers<float, kVector> v{};
    if (first + row < count && d < D) {
      v = Load<kVector>(head.at + (first + row) * head.row + d);
    }
    float* const to = tile + row * (kWidth + kPadFloats) + d;
#pragma unroll
    for (int k = 0; k < kVector; ++k) to[k] = v.at[k];
  }
}

__device__ __forceinline__ float Dot4(const Numbers<float, 4>& a,
                                      const Numbers<float, 4>& b, float sum) {
#pragma unroll
  for (int k = 0; k < 4; ++k) sum = fmaf(a.at[k], b.at[k], sum);
  return sum;
}

// Adds to sum[i][j] the dot product of the thread's row i of `a` and its column
// j, which is a row of `b`.
template <int kWidth>
__device__ __forceinline__ void AddDots(
    const float* a, const float* b,
    float (&sum)[kRowsOfThread][kColsOfThread]) {
  constexpr int kRow = kWidth + kPadFloats;
  a += FirstRowOfThread() * kRow;
  b += ColOfThread() * kRow;
#pragma unroll 4
  for (int d = 0; d < kWidth; d += 4) {
    Numbers<float, 4> rows[kRowsOfThread];
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) rows[i] = Load<4>(a + i * kRow + d);
#pragma unroll
    for (int j = 0; j < kColsOfThread; ++j) {
      const auto col = Load<4>(b + j * kThreadsOfRow * kRow + d);
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) {
        sum[i][j] = Dot4(rows[i], col, sum[i][j]);
      }
    }
  }
}

__device__ __forceinline__ void PutBlock(
    const float (&value)[kRowsOfThread][kColsOfThread], float* block) {
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
#pragma unroll
    for (int j = 0; j < kColsOfThread; ++j) {
      block[(FirstRowOfThread() + i) * kBlockRow + ColOfThread() +
            j * kThreadsOfRow] = value[i][j];
    }
  }
}

// Multiplies `value` by the thread's elements of `block`.
__device__ __forceinline__ void TakeFactors(
    const float* block, float (&value)[kRowsOfThread][kColsOfThread]) {
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
#pragma unroll
    for (int j = 0; j < kColsOfThread; ++j) {
      value[i][j] *= block[(FirstRowOfThread() + i) * kBlockRow +
                           ColOfThread() + j * kThreadsOfRow];
    }
  }
}

// A thread's part of rows of D: floats 4 (i % 8 + 8 f) and the three after it.
template <int kWidth>
struct RowSums {
  Numbers<float, 4> of[kRowsOfThread][kFoursOfThread<kWidth>];
};

// Adds the product block[32, 32] tile[32, D] to `sums`.
template <int kWidth>
__device__ __forceinline__ void AddRows(const float* block, const float* tile,
                                        RowSums<kWidth>& sums) {
  block += FirstRowOfThread() * kBlockRow;
  tile += 4 * ColOfThread();
#pragma unroll 2
  for (int j = 0; j < kTileRows; j += 4) {
    Numbers<float, 4> factor[kRowsOfThread];
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      factor[i] = Load<4>(block + i * kBlockRow + j);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int f = 0; f < kFoursOfThread<kWidth>; ++f) {
        const auto four = Load<4>(tile + (j + k) * (kWidth + kPadFloats) +
                                  4 * kThreadsOfRow * f);
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            sums.of[i][f].at[e] =
                fmaf(factor[i].at[k], four.at[e], sums.of[i][f].at[e]);
          }
        }
      }
    }
  }
}

// Stores the thread's rows times `factor[i]`, to positions first + row < count.
template <int kWidth, bool kVectors, typename T>
__device__ __forceinline__ void StoreRows(const RowSums<kWidth>& sums,
                                          const float (&factor)[kRowsOfThread],
                                          const HeadRows<T>& head, int first,
                                          int count, int D) {
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int t = first + FirstRowOfThread() + i;
    if (t >= count) continue;
#pragma unroll
    for (int f = 0; f < kFoursOfThread<kWidth>; ++f) {
      const int d = 4 * (ColOfThread() + kThreadsOfRow * f);
      T* const to = head.at + t * head.row + d;
      Numbers<float, 4> four = sums.of[i][f];
#pragma unroll
      for (int e = 0; e < 4; ++e) four.at[e] *= factor[i];
      if (kVectors) {
        if (d < D) Store(four, to);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (d + e < D) Round(four.at[e], to[e]);
        }
      }
    }
  }
}

// Return the largest value, or the sum, over the eight threads of a row, to all
// of them.
__device__ __forceinline__ float LargestOfRow(float value) {
#pragma unroll
  for (int lanes = kThreadsOfRow / 2; lanes > 0; lanes /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  }
  return value;
}
__device__ __forceinline__ float SumOfRow(float value) {
#pragma unroll
  for (int lanes = kThreadsOfRow / 2; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, lanes);
  }
  return value;
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_ATTENTION_TILE_H_
