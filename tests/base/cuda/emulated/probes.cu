#include "tests/base/cuda/emulated/probes.h"

#include "base/cuda/launch.h"

namespace emulated_cuda_test {
namespace {

using troupe::base::DynamicShared;
using troupe::base::Launch;
using troupe::base::LaunchShape;

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

LaunchShape Shape(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
  LaunchShape shape;
  shape.grid = grid;
  shape.block = block;
  shape.shared_bytes = shared_bytes;
  return shape;
}

__global__ void Shuffles(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned v = 100u + threadIdx.x;
  int row = 0;
  const auto put = [&](unsigned x) { out[row++ * 32 + lane] = x; };
  put(__shfl_sync(kAllLanes, v, 5));
  put(__shfl_sync(kAllLanes, v, lane + 1));
  put(__shfl_sync(kAllLanes, v, 3, 8));
  put(__shfl_up_sync(kAllLanes, v, 3));
  put(__shfl_up_sync(kAllLanes, v, 3, 16));
  put(__shfl_down_sync(kAllLanes, v, 3));
  put(__shfl_down_sync(kAllLanes, v, 3, 16));
  put(__shfl_xor_sync(kAllLanes, v, 16));
  put(__shfl_xor_sync(kAllLanes, v, 12, 8));
  // Eight bytes, and the two bytes of a bfloat16.
  put(static_cast<unsigned>(2 * __shfl_xor_sync(kAllLanes, 0.5 * lane, 3)));
  put(static_cast<unsigned>(__bfloat162float(__shfl_xor_sync(
      kAllLanes, __float2bfloat16(static_cast<float>(lane)), 1))));
}

__global__ void Votes(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned v = 100u + threadIdx.x;
  int row = 0;
  const auto put = [&](unsigned x) { out[row++ * 32 + lane] = x; };
  put(__ballot_sync(kAllLanes, lane % 3 == 0));
  put(static_cast<unsigned>(__any_sync(kAllLanes, lane == 31)));
  put(static_cast<unsigned>(__any_sync(kAllLanes, lane == 32)));
  put(static_cast<unsigned>(__all_sync(kAllLanes, lane < 32)));
  put(static_cast<unsigned>(__all_sync(kAllLanes, lane < 31)));
  put(__reduce_add_sync(kAllLanes, v));
  put(static_cast<unsigned>(__reduce_min_sync(kAllLanes, 5 - lane)));
  put(__reduce_max_sync(kAllLanes, 5u - threadIdx.x));
  put(__reduce_and_sync(kAllLanes, 0xF0u | threadIdx.x));
  put(__reduce_or_sync(kAllLanes, threadIdx.x));
  put(__reduce_xor_sync(kAllLanes, 1u << lane));
  put(__match_any_sync(kAllLanes, lane / 10));
}

__global__ void PartialMasks(int* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int v = lane;
  if (lane < 16) {
    for (int step = 8; step > 0; step /= 2) {
      v += __shfl_xor_sync(0x0000FFFFu, v, step);
    }
  } else {
    // Each group of four lanes votes and shuffles separately.
    const unsigned four = 0xFu << (lane & ~3);
    const int odd = __popc(__ballot_sync(four, lane % 2));
    v = odd + __shfl_sync(four, v, lane & ~3);
  }
  __syncwarp();
  out[threadIdx.x] = v + 1000 * __shfl_sync(kAllLanes, v, 0);
}

__global__ void EarlyExit(int living, int* out) {
  __shared__ int counts[8];
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned mask = __ballot_sync(kAllLanes, thread < living);
  if (thread >= living) return;
  const int mine = __reduce_add_sync(mask, 1);
  if (thread % 32 == 0) counts[thread / 32] = mine;
  __syncthreads();
  int total = 0;
  for (int warp = 0; warp * 32 < living; ++warp) total += counts[warp];
  out[thread] = total;
}

__global__ void BlockVotes(int true_count, int* out) {
  const int thread = static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x);
  const int count = __syncthreads_count(thread < true_count);
  const int all = __syncthreads_and(thread < true_count);
  const int any = __syncthreads_or(thread < true_count);
  if (thread != 0) return;
  out[0] = count;
  out[1] = all != 0;
  out[2] = any != 0;
}

__global__ void Indices(int* out) {
  const unsigned block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * 24 + thread] = static_cast<int>(block * 1000 + thread);
}

__global__ void Numbers(float* out) {
  int n = 0;
  const auto put = [&](float x) { out[n++] = x; };
  // A tie, which rounds to the even 1.
  const __nv_bfloat162 pair = __floats2bfloat162_rn(1.00390625f, -2.5f);
  put(__bfloat162float(pair.x));
  put(__bfloat1622float2(pair).y);
  const __half2 halves = __floats2half2_rn(0.1f, 65504.0f);
  put(__half2float(__low2half(halves)));
  put(__half22float2(halves).y);
  put(__bfloat162float(__float2bfloat16(3.0f) * __float2bfloat16(0.5f)));
  put(rsqrtf(4.0f));
  put(fmaf(2.0f, 3.0f, 1.0f));
  put(__uint_as_float(__float_as_uint(1.0f) | 1u));
  put(__expf(0.0f) + __logf(1.0f) + __fdividef(1.0f, 4.0f));
  const float4 f = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
  put(f.x + f.y * f.z + f.w);
  // Each operation rounds once: the products of 1 + 2^-12 lose their last bit.
  const float x = 1.000244140625f;
  put(__fadd_rn(__fmul_rn(x, x), -1.0f));
  put(fmaf(x, x, -1.0f));
  put(static_cast<float>(__dmul_rn(0.1, 3.0) - 0.3));
  put(__frcp_rn(3.0f));
  put(__fdiv_rn(1.0f, 3.0f) + __fsub_rn(1.0f, 0.5f));
  put(fmaxf(1.0f, __int_as_float(0x7FC00000)));  // the number, not the NaN
  put(__fsqrt_rn(2.0f));
  put(__saturatef(-1.0f) + __saturatef(7.0f));
}

__global__ void Integers(long long* out) {
  int n = 0;
  const auto put = [&](long long x) { out[n++] = x; };
  put(__popc(0xF0F0u) + __popcll(0xF0F0ull << 32));
  put(__clz(1) * 100 + __clz(0));
  put(__clzll(1) * 100 + __clzll(0));
  put(__ffs(8) * 100 + __ffs(0));
  put(max(2, 3) * 10 + static_cast<int>(min(4u, 5u)));
  put(__umulhi(0x80000000u, 6u));
  put(static_cast<long long>(__umul64hi(1ull << 63, 6ull)));
  put(__float2int_rn(2.5f) * 100 + __float2int_rn(3.5f));
  put(__float2int_rz(-2.9f));
  put(__float2int_rn(3e9f));
  put(__double2ll_rn(-1e300));
  put(__double_as_longlong(1.0));
}

struct ScaleBy {
  float factor;
  __host__ __device__ float operator()(float x) const { return x * factor; }
};

template <typename Function>
__global__ void Map(int count, Function function, float* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] = function(x[i]);
}

__global__ void Histogram(int count, const int* keys, unsigned* bins,
                          int* largest) {
  unsigned* const mine = DynamicShared<unsigned>();
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
       i < count; i += stride) {
    atomicAdd(&mine[keys[i]], 1);
    atomicMax(largest, keys[i]);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

// Every thread gets the sum over 64 threads, in a fixed order.
__device__ float BlockSum64(float v) {
  __shared__ float parts[2];
  for (int step = 16; step > 0; step /= 2) {
    v += __shfl_xor_sync(kAllLanes, v, step);
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  const float sum = parts[0] + parts[1];
  __syncthreads();  // parts may be written again by the next call
  return sum;
}

__global__ void LastBlock(int count, const float* x, float* partial,
                          unsigned* ticket, float* sum) {
  __shared__ bool is_last;
  float v = 0.0f;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
       i < count; i += stride) {
    v += x[i];
  }
  v = BlockSum64(v);
  if (threadIdx.x == 0) {
    __stcg(partial + blockIdx.x, v);
    __threadfence();
    is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  v = BlockSum64(threadIdx.x < gridDim.x ? __ldcg(partial + threadIdx.x)
                                         : 0.0f);
  if (threadIdx.x == 0) *sum = v;
}

}  // namespace

absl::Status ProbeShuffles(unsigned* out) {
  return Launch("Shuffles", Shuffles, Shape(1, 32), nullptr, out);
}

absl::Status ProbeVotes(unsigned* out) {
  return Launch("Votes", Votes, Shape(1, 32), nullptr, out);
}

absl::Status ProbePartialMasks(int* out) {
  return Launch("PartialMasks", PartialMasks, Shape(1, 64), nullptr, out);
}

absl::Status ProbeEarlyExit(int living, int* out) {
  return Launch("EarlyExit", EarlyExit, Shape(1, 256), nullptr, living, out);
}

absl::Status ProbeBlockVotes(int true_count, int* out) {
  return Launch("BlockVotes", BlockVotes, Shape(1, dim3(64, 4)), nullptr,
                true_count, out);
}

absl::Status ProbeIndices(int* out) {
  return Launch("Indices", Indices, Shape(dim3(2, 3, 2), dim3(4, 2, 3)),
                nullptr, out);
}

absl::Status ProbeNumbers(float* out) {
  return Launch("Numbers", Numbers, Shape(1, 1), nullptr, out);
}

absl::Status ProbeIntegers(long long* out) {
  return Launch("Integers", Integers, Shape(1, 1), nullptr, out);
}

absl::Status ProbeFunctor(int count, float factor, float* x) {
  const dim3 blocks(static_cast<unsigned>(count + 63) / 64);
  return Launch("Map<ScaleBy>", Map<ScaleBy>, Shape(blocks, 64), nullptr, count,
                ScaleBy{factor}, x);
}

absl::Status ProbeHistogram(int count, const int* keys, unsigned* bins,
                            int* largest) {
  return Launch("Histogram", Histogram, Shape(4, 64, 16 * sizeof(unsigned)),
                nullptr, count, keys, bins, largest);
}

absl::Status ProbeLastBlock(int count, const float* x, float* partial,
                            unsigned* ticket, float* sum) {
  return Launch("LastBlock", LastBlock, Shape(8, 64), nullptr, count, x,
                partial, ticket, sum);
}

}  // namespace emulated_cuda_test
