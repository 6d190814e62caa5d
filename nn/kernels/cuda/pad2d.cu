#include <cstdint>

#include "nn/kernels/cuda/image_grid.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/pad_source.h"

// Letters: N batch, C channels, H W pixels of the image, P Q of the padded one.

namespace troupe::nn::cuda {
namespace {

// One axis of the images with their border.
struct BorderAxis {
  PadMode mode;
  int in, out;  // extents
  int before;

  __device__ __forceinline__ int Source(int o) const {
    return PadSource(mode, o, before, in);
  }
  // Returns the first output after `o` that is a copy of input `i`, or `out` if
  // there is none; pass o = -1 for the first. One copy is inside the image, the
  // rest are in the border.
  __device__ __forceinline__ int NextCopy(int i, int o) const {
    const int own = i + before;
    for (++o; o < before; ++o) {
      if (Source(o) == i) return o;
    }
    if (o <= own) return own;
    for (o = max(o, before + in); o < out; ++o) {
      if (Source(o) == i) return o;
    }
    return out;
  }
};

struct BorderedImages {
  int C;
  BorderAxis h, w;  // H to P, W to Q

  __device__ __forceinline__ std::int64_t Inner(std::int64_t n, int i, int j,
                                                int c) const {
    return ((n * h.in + i) * w.in + j) * C + c;
  }
  __device__ __forceinline__ std::int64_t Outer(std::int64_t n, int p, int q,
                                                int c) const {
    return ((n * h.out + p) * w.out + q) * C + c;
  }
};

BorderedImages ImagesOf(const Padding2d& padding, const Tensor& x,
                        const Tensor& y) {
  const auto axis = [&](int i, std::int64_t before) {
    return BorderAxis{padding.mode, static_cast<int>(x.dim(i)),
                      static_cast<int>(y.dim(i)), static_cast<int>(before)};
  };
  return {static_cast<int>(x.dim(3)), axis(1, padding.top),
          axis(2, padding.left)};
}

template <typename T>
struct PadForwardBody {
  BorderedImages images;
  const T* x;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t n, int p, int q, int c) const {
    const int i = images.h.Source(p), j = images.w.Source(q);
    Numbers<float, kCount> v{};
    if (i >= 0 && j >= 0) v = Load<kCount>(x + images.Inner(n, i, j, c));
    Store(v, y + images.Outer(n, p, q, c));
  }
};

// Adds up the copies of a pixel, in row order.
template <typename T>
struct PadBackwardBody {
  BorderedImages images;
  const T* dy;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t n, int i, int j, int c) const {
    const BorderAxis &h = images.h, &w = images.w;
    Numbers<float, kCount> sum{};
    for (int p = h.NextCopy(i, -1); p < h.out; p = h.NextCopy(i, p)) {
      for (int q = w.NextCopy(j, -1); q < w.out; q = w.NextCopy(j, q)) {
        const auto v = Load<kCount>(dy + images.Outer(n, p, q, c));
        for (int k = 0; k < kCount; ++k) sum.at[k] += v.at[k];
      }
    }
    Store(sum, dx + images.Inner(n, i, j, c));
  }
};

struct Pad2dForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Padding2d& padding, In x,
                          Tensor& y) {
    const PadForwardBody<T> body{ImagesOf(padding, x, y), DataOfImages<T>(x),
                                 DataOfImages<T>(y)};
    return ForEachPixel<kVectorOf<T>>(
        "Pad2dForward", cuda, y, IsAligned(body.x) && IsAligned(body.y), body);
  }
};

struct Pad2dBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Padding2d& padding, In dy,
                          Tensor& dx) {
    const PadBackwardBody<T> body{ImagesOf(padding, dx, dy),
                                  DataOfImages<T>(dy), DataOfImages<T>(dx)};
    return ForEachPixel<kVectorOf<T>>("Pad2dBackward", cuda, dx,
                                      IsAligned(body.dy) && IsAligned(body.dx),
                                      body);
  }
};

}  // namespace

template <>
void BindFamily(Pad2dKernels& ops, CudaOps* state) {
  BindFloating<Pad2dForward>(ops.Pad2dForward, state);
  BindFloating<Pad2dBackward>(ops.Pad2dBackward, state);
}

}  // namespace troupe::nn::cuda
