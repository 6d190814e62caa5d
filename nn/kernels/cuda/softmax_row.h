// The softmax of one row of logits by a warp or a block. The largest logit and
// the sum of exponentials take one pass over the row (Milakov and Gimelshein
// 2018, "Online normalizer calculation for softmax"), the gradient of cross
// entropy a second one.
//
//   const SoftmaxOfRow all = SoftmaxSums<kVector, kRowThreads>(C, thread, row);
//   SoftmaxGradient<kVector, kRowThreads>(C, thread, all, target, row, d_row);
//
// Letter: C classes, a multiple of kVector. All kRowThreads threads of the row
// must call: 32 (a warp) or those of the block.

#ifndef NN_KERNELS_CUDA_SOFTMAX_ROW_H_
#define NN_KERNELS_CUDA_SOFTMAX_ROW_H_

#include <cmath>

#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {

struct SoftmaxOfRow {
  double sum;     // sum of e^(logit - largest)
  float largest;  // a NaN counts as larger than all numbers
  int index;      // index of the first logit that is as large
};

inline constexpr int kNoClass = 0x7fffffff;

__device__ __forceinline__ bool IsLarger(float a, float b) {
  return !(a <= b) && b == b;
}

// Returns `s.sum` relative to `largest` in place of s.largest. A sum of 0 stays
// 0: all its logits may be minus infinity.
__device__ __forceinline__ double SumFrom(const SoftmaxOfRow& s,
                                          float largest) {
  if (s.sum == 0) return 0;
  return s.sum * static_cast<double>(expf(s.largest - largest));
}

struct MergeSoftmax {
  __device__ __forceinline__ SoftmaxOfRow
  operator()(const SoftmaxOfRow& a, const SoftmaxOfRow& b) const {
    const bool equal =
        !IsLarger(a.largest, b.largest) && !IsLarger(b.largest, a.largest);
    const bool take_b =
        equal ? b.index < a.index : IsLarger(b.largest, a.largest);
    const SoftmaxOfRow& winner = take_b ? b : a;
    return {SumFrom(a, winner.largest) + SumFrom(b, winner.largest),
            winner.largest, winner.index};
  }
};

// Replaces the largest logit of `s` by the largest of `v` if that is larger.
// `v` has logits c, c + 1, ...
template <int kVector>
__device__ __forceinline__ void TakeLargest(const Numbers<float, kVector>& v,
                                            int c, SoftmaxOfRow& s) {
  int at = 0;
  float largest = v.at[0];
#pragma unroll
  for (int k = 1; k < kVector; ++k) {
    if (!IsLarger(v.at[k], largest)) continue;
    largest = v.at[k];
    at = k;
  }
  if (s.index == kNoClass || IsLarger(largest, s.largest)) {
    s.sum = SumFrom(s, largest);
    s.largest = largest;
    s.index = c + at;
  }
}

// Adds logits c, c + 1, ... to `s`. Long rows are bound by the number of
// instructions. Most vectors have no new largest logit, which a few fmaxf()
// detect (NaNs are tested separately), and a vector is summed in f32.
template <int kVector>
__device__ __forceinline__ void AddLogits(const Numbers<float, kVector>& v,
                                          int c, SoftmaxOfRow& s) {
  float largest = v.at[0];
  bool nan = v.at[0] != v.at[0];
#pragma unroll
  for (int k = 1; k < kVector; ++k) {
    largest = fmaxf(largest, v.at[k]);
    nan = nan || v.at[k] != v.at[k];
  }
  if (nan || s.index == kNoClass || largest > s.largest) TakeLargest(v, c, s);
  if (s.largest == -INFINITY) return;  // all logits are, and add nothing
  float sum = expf(v.at[0] - s.largest);
#pragma unroll
  for (int k = 1; k < kVector; ++k) sum += expf(v.at[k] - s.largest);
  s.sum += static_cast<double>(sum);
}

template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ SoftmaxOfRow SoftmaxSums(int C, int thread,
                                                    const T* row) {
  SoftmaxOfRow s = {0, -INFINITY, kNoClass};
  for (int c = thread * kVector; c < C; c += kRowThreads * kVector) {
    AddLogits(Load<kVector>(row + c), c, s);
  }
  if constexpr (kRowThreads == kWarpThreads) {
    s = MergeWarp(s, MergeSoftmax());
    __syncwarp();  // all lanes have read the row before one overwrites it
    return s;
  } else {
    return MergeBlock<kRowThreads>(s, MergeSoftmax());
  }
}

// Writes d_row = softmax(row) - onehot(target). d_row may be `row`.
template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ void SoftmaxGradient(int C, int thread,
                                                const SoftmaxOfRow& all,
                                                int target, const T* row,
                                                T* d_row) {
  const float inverse = static_cast<float>(1 / all.sum);
  for (int c = thread * kVector; c < C; c += kRowThreads * kVector) {
    Numbers<float, kVector> v = Load<kVector>(row + c);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      v.at[k] = expf(v.at[k] - all.largest) * inverse;
    }
    if (target >= c && target < c + kVector) {
#pragma unroll
      for (int k = 0; k < kVector; ++k) v.at[k] -= c + k == target ? 1 : 0;
    }
    Store(v, d_row + c);
  }
}

template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ void FillZeros(int C, int thread, T* d_row) {
  for (int c = thread * kVector; c < C; c += kRowThreads * kVector) {
    Store(Numbers<float, kVector>{}, d_row + c);
  }
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_SOFTMAX_ROW_H_
