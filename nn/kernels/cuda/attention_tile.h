// What the kernels of attention are made of: tiles of kTileRows positions of a
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
// A block of kTileThreads has rows by eights of threads: thread i has rows
// 2 (i / 8) and 2 (i / 8) + 1, and of a square block the columns i % 8 + 8 j.
// So a row belongs to threads of one warp, what they write is read by them
// alone, and neighbours read other banks. Every sum ascends.

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
// Floats from one row to the next: 16 bytes more than there are, so that eight
// rows lie in different banks.
inline constexpr int kPadFloats = 4;
inline constexpr int kBlockRow = kTileRows + kPadFloats;
inline constexpr int kBlockFloats = kTileRows * kBlockRow;
template <int kWidth>
inline constexpr int kTileFloats = kTileRows*(kWidth + kPadFloats);
// Floats of a row of D that a thread has, in fours.
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
  std::int64_t sample, row;  // elements from one to the next

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

// Positions [first, first + kTileRows) of a head; zeros from `count` on, and
// behind D.
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

// sum[i][j] += row i of the thread of `a` times its column j, a row of `b`.
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

// value *= block
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

// A thread's part of rows of D: floats 4 (i % 8 + 8 f) and the three behind.
template <int kWidth>
struct RowSums {
  Numbers<float, 4> of[kRowsOfThread][kFoursOfThread<kWidth>];
};

// sums += block[32, 32] tile[32, D]
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

// Rows of the thread, times `factor[i]`, to positions first + row < count.
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

// The largest value of the eight threads of a row, in all of them.
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
