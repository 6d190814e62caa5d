// One kernel for all ops that compute each pixel of images independently. A
// body computes channels [c, c + kCount) of pixel [n, i, j]:
//
//   template <typename T>
//   struct Copy {
//     const T* x;
//     T* y;
//     int height, width, C;
//     template <int kCount>
//     __device__ void At(std::int64_t n, int i, int j, int c) const {
//       const std::int64_t at = ((n * height + i) * width + j) * C + c;
//       Store(Load<kCount>(x + at), y + at);
//     }
//   };
//   status = ForEachPixel<kVectorOf<float>>("Copy", cuda, images, aligned,
//                                           Copy<float>{x, y, H, W, C});
//
// In a backward pass, each pixel gathers its own gradient, so that no two
// threads write one element. An element gets the same bits whether it is
// computed alone or in a vector.

#ifndef NN_KERNELS_CUDA_IMAGE_GRID_H_
#define NN_KERNELS_CUDA_IMAGE_GRID_H_

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"

namespace troupe::nn::cuda {

// Calls body.At<kVector>(n, i, j, c) for every pixel [n, i, j] of N images of
// `height` x `width` and every kVector-th channel.
template <int kVector, typename Body>
__global__ void __launch_bounds__(kElementThreads)
    PixelKernel(std::int64_t N, int height, int width, int C, Body body) {
  const int packs = C / kVector;
  const int items = width * packs;
  const std::int64_t rows = N * height;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    for (std::int64_t item = ThreadOfGrid(); item < items;
         item += ThreadsOfGrid()) {
      const int at = static_cast<int>(item);
      body.template At<kVector>(row / height, static_cast<int>(row % height),
                                at / packs, at % packs * kVector);
    }
  }
}

template <int kVector, typename Body>
absl::Status ForEachPixel(base::KernelName name, const CudaOps& cuda,
                          const Tensor& images, bool aligned,
                          const Body& body) {
  const std::int64_t N = images.dim(0), height = images.dim(1);
  const std::int64_t width = images.dim(2), C = images.dim(3);
  if (images.numel() == 0) return absl::OkStatus();
  const bool vectors = aligned && C % kVector == 0;
  const std::int64_t items = width * (vectors ? C / kVector : C);
  base::LaunchShape shape = GridOf(items);
  // Whole warps, but no more than a row of pixels fills.
  shape.block = dim3(static_cast<unsigned>(
      std::min<std::int64_t>((items + 31) / 32 * 32, kElementThreads)));
  shape.grid.y =
      static_cast<unsigned>(std::min<std::int64_t>(N * height, kGridYMax));
  return base::Launch(
      name, vectors ? PixelKernel<kVector, Body> : PixelKernel<1, Body>, shape,
      cuda.stream, N, static_cast<int>(height), static_cast<int>(width),
      static_cast<int>(C), body);
}

// Returns the device address of images; null if they have no elements, which
// may also have no memory.
template <typename T>
T* DataOfImages(const Tensor& t) {
  return t.numel() == 0 ? nullptr : Data<T>(t);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_IMAGE_GRID_H_
