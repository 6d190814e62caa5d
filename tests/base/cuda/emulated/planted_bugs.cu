#include "tests/base/cuda/emulated/planted_bugs.h"

#include <type_traits>

#include "base/cuda/launch.h"

namespace emulated_cuda_test {
namespace {

using troupe::base::DynamicShared;
using troupe::base::LaunchShape;

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

template <Bug kBug>
__device__ float WarpSum(float v) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Returns although the mask names these lanes.
  if (kBug == Bug::kMaskNamesAbsentLanes && lane >= 16) return v;
  unsigned mask = kAllLanes;
  int step = 16;
  if (kBug == Bug::kMaskLacksTheCaller) {
    mask = 0x0000FFFFu;
    step = 8;
  }
  if (kBug == Bug::kReadsOutsideMask) mask = lane < 16 ? 0xFFFFu : 0xFFFF0000u;
  for (; step > 0; step /= 2) v += __shfl_xor_sync(mask, v, step);
  return v;
}

template <Bug kBug>
__device__ float BlockSum(float v) {
  __shared__ float parts[8];
  v = WarpSum<kBug>(v);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  if (kBug != Bug::kNoSyncAfterWrite) __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < 8; ++warp) sum += parts[warp];
  if (kBug != Bug::kNoSyncBeforeReuse) __syncthreads();
  return sum;
}

template <Bug kBug>
__global__ void RowSumsKernel(const float* in, float* out) {
  const float v = in[blockIdx.x * 256 + threadIdx.x];
  const float sum = BlockSum<kBug>(v);
  const float squares = BlockSum<kBug>(v * v);
  if (threadIdx.x % 64 == 0) {
    out[blockIdx.x * 4 + threadIdx.x / 64] = sum + squares;
  }
}

template <Bug kBug>
__global__ void ShiftKernel(const float* in, float* out, int count) {
  __shared__ float fixed[128];
  float* const dynamic = DynamicShared<float>();
  const int t = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x) * 128 + t;
  if (kBug != Bug::kStaticUninitialised || t != 77) fixed[t] = in[i];
  if (kBug != Bug::kDynamicUninitialised || t != 77) dynamic[t] = in[i];
  if (kBug == Bug::kWritesPastDynamic && t == 127) dynamic[t + 1] = 0.0f;
  if (kBug == Bug::kWritesPastStatic && t == 127) {
    fixed[t + static_cast<int>(gridDim.x)] = 0.0f;
  }
  if (kBug != Bug::kNoSync) __syncthreads();
  float v = 0.5f * (fixed[(t + 1) % 128] + dynamic[(t + 1) % 128]);
  if (kBug == Bug::kReadsPastGlobal) v += 0.0f * in[i + 1];
  const int to = i + (kBug == Bug::kWritesPastGlobal ? 1 : 0);
  if (kBug != Bug::kSkipsAnOutput || i != count - 3) out[to] = v;
  // Two blocks write one element.
  if (kBug == Bug::kSpillsToNextBlock && t == 127 && i + 1 < count) {
    out[i + 1] = v;
  }
}

template <Bug kBug>
__global__ void WarpExchangeKernel(const float* in, float* out) {
  __shared__ float values[64];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = in[t];
  if (kBug != Bug::kNoSyncwarp) __syncwarp();
  int from = t ^ 1;
  // The second warp reads values that the first has written.
  if (kBug == Bug::kSyncwarpAcrossWarps) from = t % 32;
  out[t] = values[from];
}

template <Bug kBug>
__global__ void DivergeKernel(const float* in, float* out) {
  __shared__ float values[128];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = in[t];
  float v = 0.0f;
  if (kBug == Bug::kBarrierInOneBranch) {
    if (t < 40) __syncthreads();
    __syncthreads();
  } else if (kBug == Bug::kTwoBarriers) {
    if (t < 64) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  } else if (kBug == Bug::kBarrierAgainstShuffle) {
    if (t % 32 == 0) {
      __syncthreads();
    } else {
      v = __shfl_sync(kAllLanes, 1.0f, 0);
    }
  } else if (kBug == Bug::kUnevenLoop) {
    for (int i = t; i < 200; i += 128) {
      v += __shfl_xor_sync(kAllLanes, 1.0f, 4);
    }
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[t] = values[127 - t] + v;
}

__global__ void FloatAtomicSumKernel(const float* in, float* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) atomicAdd(out, in[i]);
}

LaunchShape Shape(int blocks, int threads, std::size_t shared_bytes = 0) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(blocks));
  shape.block = dim3(static_cast<unsigned>(threads));
  shape.shared_bytes = shared_bytes;
  return shape;
}

template <Bug... kBugs>
struct Bugs {};

// Calls launch(std::integral_constant<Bug, bug>()) if the kernel has this bug.
template <typename LaunchBug, Bug... kBugs>
absl::Status Dispatch(Bug bug, Bugs<kBugs...>, LaunchBug launch) {
  absl::Status status = absl::InvalidArgumentError("no such bug here");
  ((bug == kBugs ? void(status = launch(std::integral_constant<Bug, kBugs>()))
                 : void()),
   ...);
  return status;
}

}  // namespace

absl::Status RowSums(Bug bug, const float* in, float* out, int rows) {
  using All = Bugs<Bug::kNone, Bug::kNoSyncAfterWrite, Bug::kNoSyncBeforeReuse,
                   Bug::kMaskLacksTheCaller, Bug::kMaskNamesAbsentLanes,
                   Bug::kReadsOutsideMask>;
  return Dispatch(bug, All(), [&](auto b) {
    return troupe::base::Launch("RowSums", RowSumsKernel<b()>, Shape(rows, 256),
                                nullptr, in, out);
  });
}

absl::Status Shift(Bug bug, const float* in, float* out, int count) {
  using All = Bugs<Bug::kNone, Bug::kNoSync, Bug::kStaticUninitialised,
                   Bug::kDynamicUninitialised, Bug::kWritesPastGlobal,
                   Bug::kReadsPastGlobal, Bug::kWritesPastDynamic,
                   Bug::kWritesPastStatic, Bug::kSkipsAnOutput,
                   Bug::kSpillsToNextBlock>;
  return Dispatch(bug, All(), [&](auto b) {
    return troupe::base::Launch("Shift", ShiftKernel<b()>,
                                Shape(count / 128, 128, 128 * sizeof(float)),
                                nullptr, in, out, count);
  });
}

absl::Status WarpExchange(Bug bug, const float* in, float* out) {
  using All = Bugs<Bug::kNone, Bug::kNoSyncwarp, Bug::kSyncwarpAcrossWarps>;
  return Dispatch(bug, All(), [&](auto b) {
    return troupe::base::Launch("WarpExchange", WarpExchangeKernel<b()>,
                                Shape(1, 64), nullptr, in, out);
  });
}

absl::Status Diverge(Bug bug, const float* in, float* out) {
  using All = Bugs<Bug::kNone, Bug::kBarrierInOneBranch, Bug::kTwoBarriers,
                   Bug::kBarrierAgainstShuffle, Bug::kUnevenLoop>;
  return Dispatch(bug, All(), [&](auto b) {
    return troupe::base::Launch("Diverge", DivergeKernel<b()>, Shape(1, 128),
                                nullptr, in, out);
  });
}

absl::Status FloatAtomicSum(const float* in, float* out, int count) {
  return troupe::base::Launch("FloatAtomicSum", FloatAtomicSumKernel,
                              Shape((count + 255) / 256, 256), nullptr, in, out,
                              count);
}

}  // namespace emulated_cuda_test
