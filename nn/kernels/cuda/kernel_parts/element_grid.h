// One kernel for all elementwise ops. A body computes the elements
// [i, i + kCount):
//
//   template <typename T>
//   struct Relu {
//     const T* x;
//     T* y;
//     template <int kCount>
//     __device__ void At(std::int64_t i) const {
//       auto v = Load<kCount>(x + i);
//       for (float& value : v.at) value = value <= 0 ? 0 : value;
//       Store(v, y + i);
//     }
//   };
//   status = ForEachElement<kVectorOf<float>>(
//       "ReluForward", stream, n, IsAligned(x) && IsAligned(y),
//       Relu<float>{x, y});
//
// An element gets the same bits whether it is computed alone or in a vector:
// each body computes its elements one by one.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENT_GRID_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENT_GRID_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "base/cuda/launch.h"

namespace troupe::nn::cuda {

inline constexpr int kElementThreads = 256;
// Limit on blocks. It fills every GPU of today; each thread loops over the rest
// of the elements.
inline constexpr std::int64_t kElementBlocksMax = 4096;
// CUDA's limit on blocks in the second and third dimension of a grid.
inline constexpr std::int64_t kGridYMax = 65535;

// Returns the index of this thread in a grid of one dimension.
__device__ __forceinline__ std::int64_t ThreadOfGrid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t ThreadsOfGrid() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

template <int kVector, typename Body>
__global__ void __launch_bounds__(kElementThreads)
    ElementKernel(std::int64_t count, Body body) {
  const std::int64_t vectors = count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    body.template At<kVector>(v * kVector);
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < count) body.template At<1>(i);
  }
}

// Returns the grid with one thread for each item, limited to kElementBlocksMax
// blocks.
inline base::LaunchShape GridOf(std::int64_t items) {
  const std::int64_t blocks = (items + kElementThreads - 1) / kElementThreads;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(
      std::clamp<std::int64_t>(blocks, 1, kElementBlocksMax)));
  shape.block = dim3(kElementThreads);
  return shape;
}

// Runs `body` on the elements [0, count), kVector at a time if `aligned`: all
// addresses are multiples of 16 bytes.
template <int kVector, typename Body>
absl::Status ForEachElement(base::KernelName name, cudaStream_t stream,
                            std::int64_t count, bool aligned,
                            const Body& body) {
  if (count == 0) return absl::OkStatus();
  if (aligned) {
    return base::Launch(name, ElementKernel<kVector, Body>,
                        GridOf(count / kVector), stream, count, body);
  }
  return base::Launch(name, ElementKernel<1, Body>, GridOf(count), stream,
                      count, body);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENT_GRID_H_
