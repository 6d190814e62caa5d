// Reductions over the threads of a warp or a block. The order of the merges
// follows from the number of threads alone, so results have the same bits every
// time.
//
//   struct Sum {
//     __device__ double operator()(double a, double b) const { return a + b; }
//   };
//   const double of_warp = MergeWarp(mine, Sum());        // in all its lanes
//   const double of_block = MergeBlock<256>(mine, Sum()); // in all threads
//
// Values are 8-byte words, or structs of them without constructors. `merge`
// must give the same bits for (a, b) and (b, a). All threads of the warp or
// block must call.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_REDUCE_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_REDUCE_H_

#include <cstring>

#include "base/cuda/launch.h"

namespace troupe::nn::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// Returns the value of the lane whose index is this lane's XOR `lanes`.
template <typename T>
__device__ __forceinline__ T FromLane(const T& value, int lanes) {
  constexpr int kWords = sizeof(T) / sizeof(unsigned long long);
  static_assert(kWords * sizeof(unsigned long long) == sizeof(T),
                "a value is made of 8-byte words");
  unsigned long long words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = __shfl_xor_sync(kWholeWarp, words[i], lanes);
  }
  T theirs;
  memcpy(&theirs, words, sizeof(T));
  return theirs;
}

template <typename T, typename Merge>
__device__ __forceinline__ T MergeWarp(T value, Merge merge) {
#pragma unroll
  for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
    value = merge(value, FromLane(value, lanes));
  }
  return value;
}

// Merges the values of all threads of a block, which has one dimension and
// `kThreads` threads.
template <int kThreads, typename T, typename Merge>
__device__ T MergeBlock(T value, Merge merge) {
  constexpr int kWarps = kThreads / kWarpThreads;
  static_assert(kWarps * kWarpThreads == kThreads, "warps are full");
  __shared__ T of_warp[kWarps];
  value = MergeWarp(value, merge);
  __syncthreads();  // threads of an earlier call may still read `of_warp`
  if (threadIdx.x % kWarpThreads == 0) {
    of_warp[threadIdx.x / kWarpThreads] = value;
  }
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) {
    value = merge(value, of_warp[warp]);
  }
  return value;
}

// The merge function of a sum, for MergeWarp and MergeBlock.
struct AddValues {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_REDUCE_H_
