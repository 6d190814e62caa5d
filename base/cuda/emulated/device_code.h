// CUDA's device language for a plain C++ compiler: base/cuda/launch.h includes
// it if the compiler is not nvcc. Kernels then run on executor.h.
//
//   __global__ void Reverse64(float* x) {
//     __shared__ float all[64];
//     all[threadIdx.x] = x[threadIdx.x];
//     __syncthreads();
//     x[threadIdx.x] = all[63 - threadIdx.x];
//   }
//
// Most of it is in the toolkit's headers: for a compiler that is not nvcc,
// host_defines.h defines __global__, __device__ and the like to nothing, and
// the vector, half and bfloat16 types have host implementations. Only the names
// that nvcc builds in are missing; they are here and in device_math.h. A
// missing intrinsic does not compile: add it, most are one line. README.md
// lists what kernels must not use, and why.
//
// Stricter than hardware: every lane in a mask makes the same call on the same
// source line, and every lane that a shuffle reads takes part. Shuffles and
// votes do not order memory; __syncwarp() and __syncthreads() do.

#ifndef BASE_CUDA_EMULATED_DEVICE_CODE_H_
#define BASE_CUDA_EMULATED_DEVICE_CODE_H_

#if defined(__CUDACC__)
#error "device_code.h is for the host's compiler; include base/cuda/launch.h"
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/cuda/emulated/device_math.h"
#include "base/cuda/emulated/thread_ops.h"

// Blocks run one after another, so a block's shared memory can be static. The
// attribute gathers it in sections that shared_memory.ld makes contiguous, so
// that the executor can poison all of it before each block.
#undef __shared__
#if defined(__clang__)  // knows no noinit, and takes sections in templates
#define __shared__ static __attribute__((section(".noinit")))
#else
#define __shared__ static __attribute__((noinit))
#endif
#define __launch_bounds__(...)

constexpr int warpSize = 32;

namespace emulated_cuda {

template <typename T>
T Shuffle(Op op, unsigned mask, T value, int argument, int width,
          CodeSite site) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8 &&
                    !(std::is_arithmetic<T>::value && sizeof(T) < 4),
                "CUDA has no shuffle for this type");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  bits = WarpOp({op, mask, bits, argument, width}, site);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(value));
  return value;
}

inline std::uint64_t Vote(Op op, unsigned mask, int predicate, CodeSite site) {
  return WarpOp({op, mask, predicate != 0 ? 1u : 0u}, site);
}

template <typename T>
T Reduce(Op op, unsigned mask, T value, CodeSite site) {
  static_assert(std::is_same<T, int>::value || std::is_same<T, unsigned>::value,
                "CUDA reduces int and unsigned only");
  return static_cast<T>(WarpOp({op, mask, static_cast<unsigned>(value),
                                std::is_signed<T>::value ? 1 : 0},
                               site));
}

}  // namespace emulated_cuda

// Source line of the caller, for reports.
#define EMULATED_CUDA_AT \
  emulated_cuda::CodeSite at = emulated_cuda::CodeSite::Here()

// Barriers of the block.

inline void __syncthreads(EMULATED_CUDA_AT) {
  emulated_cuda::BlockOp(emulated_cuda::Op::kSyncthreads, 0, at);
}

#define EMULATED_CUDA_BLOCK_VOTE(name, op)                               \
  inline int name(int predicate, EMULATED_CUDA_AT) {                     \
    return emulated_cuda::BlockOp(emulated_cuda::Op::op, predicate, at); \
  }
EMULATED_CUDA_BLOCK_VOTE(__syncthreads_count, kSyncthreadsCount)
EMULATED_CUDA_BLOCK_VOTE(__syncthreads_and, kSyncthreadsAnd)
EMULATED_CUDA_BLOCK_VOTE(__syncthreads_or, kSyncthreadsOr)
#undef EMULATED_CUDA_BLOCK_VOTE

// Operations of the warp. __activemask() is left out, since no code should
// depend on its result.

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, EMULATED_CUDA_AT) {
  emulated_cuda::WarpOp({emulated_cuda::Op::kSyncwarp, mask, 0}, at);
}

#define EMULATED_CUDA_SHUFFLE(name, op, Argument)                         \
  template <typename T>                                                   \
  T name(unsigned mask, T value, Argument argument, int width = 32,       \
         EMULATED_CUDA_AT) {                                              \
    return emulated_cuda::Shuffle(emulated_cuda::Op::op, mask, value,     \
                                  static_cast<int>(argument), width, at); \
  }
EMULATED_CUDA_SHUFFLE(__shfl_sync, kShfl, int)
EMULATED_CUDA_SHUFFLE(__shfl_up_sync, kShflUp, unsigned)
EMULATED_CUDA_SHUFFLE(__shfl_down_sync, kShflDown, unsigned)
EMULATED_CUDA_SHUFFLE(__shfl_xor_sync, kShflXor, int)
#undef EMULATED_CUDA_SHUFFLE

#define EMULATED_CUDA_VOTE(Result, name, op)                              \
  inline Result name(unsigned mask, int predicate, EMULATED_CUDA_AT) {    \
    return static_cast<Result>(                                           \
        emulated_cuda::Vote(emulated_cuda::Op::op, mask, predicate, at)); \
  }
EMULATED_CUDA_VOTE(unsigned, __ballot_sync, kBallot)
EMULATED_CUDA_VOTE(int, __any_sync, kAny)
EMULATED_CUDA_VOTE(int, __all_sync, kAll)
#undef EMULATED_CUDA_VOTE

#define EMULATED_CUDA_REDUCE(name, op)                                    \
  template <typename T>                                                   \
  T name(unsigned mask, T value, EMULATED_CUDA_AT) {                      \
    return emulated_cuda::Reduce(emulated_cuda::Op::op, mask, value, at); \
  }
EMULATED_CUDA_REDUCE(__reduce_add_sync, kReduceAdd)
EMULATED_CUDA_REDUCE(__reduce_min_sync, kReduceMin)
EMULATED_CUDA_REDUCE(__reduce_max_sync, kReduceMax)
EMULATED_CUDA_REDUCE(__reduce_and_sync, kReduceAnd)
EMULATED_CUDA_REDUCE(__reduce_or_sync, kReduceOr)
EMULATED_CUDA_REDUCE(__reduce_xor_sync, kReduceXor)
#undef EMULATED_CUDA_REDUCE

template <typename T>
unsigned __match_any_sync(unsigned mask, T value, EMULATED_CUDA_AT) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8,
                "CUDA matches values of 4 and 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return static_cast<unsigned>(
      emulated_cuda::WarpOp({emulated_cuda::Op::kMatchAny, mask, bits}, at));
}

[[noreturn]] inline void __trap(EMULATED_CUDA_AT) { emulated_cuda::Trap(at); }

#undef EMULATED_CUDA_AT

#endif  // BASE_CUDA_EMULATED_DEVICE_CODE_H_
