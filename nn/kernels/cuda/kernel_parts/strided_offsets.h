// Computes the offsets of a step of strided loops in both operands, on the
// device.
//
//   const Offsets at = OffsetsOf(loops, i);
//   y[at.b] = x[at.a];

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_STRIDED_OFFSETS_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_STRIDED_OFFSETS_H_

#include <cstdint>

#include "base/cuda/launch.h"
#include "nn/kernels/strided_loops.h"

namespace troupe::nn::cuda {

// StridedLoops as plain arrays, which device code can read.
struct DeviceLoops {
  int rank;
  std::int64_t extent[Shape::kMaxRank];
  std::int64_t a[Shape::kMaxRank], b[Shape::kMaxRank];
  std::int64_t a_begin, b_begin;
};

inline DeviceLoops ForDevice(const StridedLoops& loops) {
  DeviceLoops made{};
  made.rank = loops.rank;
  for (int axis = 0; axis < loops.rank; ++axis) {
    made.extent[axis] = loops.extent[axis];
    made.a[axis] = loops.a[axis];
    made.b[axis] = loops.b[axis];
  }
  made.a_begin = loops.a_begin;
  made.b_begin = loops.b_begin;
  return made;
}

struct Offsets {
  std::int64_t a, b;
};

// Returns the offsets of step i, counted in the order of the loops.
__device__ __forceinline__ Offsets OffsetsOf(const DeviceLoops& loops,
                                             std::int64_t i) {
  Offsets at{loops.a_begin, loops.b_begin};
#pragma unroll
  for (int axis = Shape::kMaxRank - 1; axis >= 0; --axis) {
    if (axis >= loops.rank) continue;
    // The outermost axis takes the whole rest, which saves one division.
    const std::int64_t next = axis == 0 ? 0 : i / loops.extent[axis];
    const std::int64_t index = i - next * loops.extent[axis];
    at.a += index * loops.a[axis];
    at.b += index * loops.b[axis];
    i = next;
  }
  return at;
}

// Returns whether `vector` steps that start at a multiple of `vector` always
// stay within one run of the last axis.
inline bool RunsHoldVectors(const StridedLoops& loops, int vector) {
  return loops.rank > 0 && loops.extent[loops.rank - 1] % vector == 0;
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_STRIDED_OFFSETS_H_
