#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/cuda_ops.h"
#include "nn/kernels/cuda/dispatch.h"
#include "nn/kernels/cuda/element_grid.h"
#include "nn/kernels/cuda/elements.h"

// Letters: N batch, C channels, H W input pixels, P Q output pixels. A thread
// has several channels of one pixel. Backward, a pixel of the input gathers
// from the windows that it lies in, in row order: no two threads write one
// element.

namespace troupe::nn::cuda {
namespace {

// One axis of a window over images.
struct Axis {
  int in, out;  // extents
  int kernel, stride, pad;

  // The inputs [begin, end) of output `o`, and the outputs of input `i`.
  __device__ __forceinline__ int InBegin(int o) const {
    return max(o * stride - pad, 0);
  }
  __device__ __forceinline__ int InEnd(int o) const {
    return min(o * stride - pad + kernel, in);
  }
  __device__ __forceinline__ int OutBegin(int i) const {
    return i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1;
  }
  __device__ __forceinline__ int OutEnd(int i) const {
    return min((i + pad) / stride + 1, out);
  }
};

struct Images {
  std::int64_t N;
  int C;
  Axis h, w;  // H to P, W to Q

  __device__ __forceinline__ std::int64_t In(std::int64_t n, int i, int j,
                                             int c) const {
    return ((n * h.in + i) * w.in + j) * C + c;
  }
  __device__ __forceinline__ std::int64_t Out(std::int64_t n, int p, int q,
                                              int c) const {
    return ((n * h.out + p) * w.out + q) * C + c;
  }
};

Axis AxisOf(std::int64_t in, std::int64_t out, std::int64_t kernel,
            std::int64_t stride, std::int64_t pad) {
  return {static_cast<int>(in), static_cast<int>(out), static_cast<int>(kernel),
          static_cast<int>(stride), static_cast<int>(pad)};
}

Images ImagesOf(const Window2d& window, const Tensor& x, const Tensor& y) {
  return {x.dim(0), static_cast<int>(x.dim(3)),
          AxisOf(x.dim(1), y.dim(1), window.kernel_h, window.stride_h,
                 window.pad_h),
          AxisOf(x.dim(2), y.dim(2), window.kernel_w, window.stride_w,
                 window.pad_w)};
}

// body.At<kVector>(n, i, j, c) for every pixel [n, i, j] of N images of
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
  // Whole warps, and no more of them than a row of pixels fills.
  shape.block = dim3(static_cast<unsigned>(
      std::min<std::int64_t>((items + 31) / 32 * 32, kElementThreads)));
  shape.grid.y =
      static_cast<unsigned>(std::min<std::int64_t>(N * height, kGridYMax));
  return base::Launch(
      name, vectors ? PixelKernel<kVector, Body> : PixelKernel<1, Body>, shape,
      cuda.stream, N, static_cast<int>(height), static_cast<int>(width),
      static_cast<int>(C), body);
}

template <typename T>
struct MaxForwardBody {
  Images images;
  const T* x;
  T* y;
  std::int32_t* argmax;

  template <int kCount>
  __device__ void At(std::int64_t n, int p, int q, int c) const {
    const Axis &h = images.h, &w = images.w;
    Numbers<float, kCount> best;
    Pack<std::int32_t, kCount> winner;
    for (int k = 0; k < kCount; ++k) {
      best.at[k] = -INFINITY;
      winner.at[k] = -1;
    }
    for (int i = h.InBegin(p); i < h.InEnd(p); ++i) {
      for (int j = w.InBegin(q); j < w.InEnd(q); ++j) {
        Take<kCount>(Load<kCount>(x + images.In(n, i, j, c)), i * w.in + j,
                     best, winner);
      }
    }
    Store(best, y + images.Out(n, p, q, c));
    StorePack(winner, argmax + images.Out(n, p, q, c));
  }

  // The first of equals, and the last NaN before all.
  template <int kCount>
  __device__ __forceinline__ void Take(
      const Numbers<float, kCount>& v, int pixel, Numbers<float, kCount>& best,
      Pack<std::int32_t, kCount>& winner) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float value = v.at[k];
      const bool wins =
          winner.at[k] < 0 || value > best.at[k] || value != value;
      best.at[k] = wins ? value : best.at[k];
      winner.at[k] = wins ? pixel : winner.at[k];
    }
  }
};

template <typename T>
struct MaxBackwardBody {
  Images images;
  const T* dy;
  const std::int32_t* argmax;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t n, int i, int j, int c) const {
    const Axis &h = images.h, &w = images.w;
    const std::int32_t pixel = i * w.in + j;
    Numbers<float, kCount> sum{};
    for (int p = h.OutBegin(i); p < h.OutEnd(i); ++p) {
      for (int q = w.OutBegin(j); q < w.OutEnd(j); ++q) {
        const std::int64_t at = images.Out(n, p, q, c);
        const Numbers<float, kCount> v = Load<kCount>(dy + at);
        const auto winner = LoadPack<kCount>(argmax + at);
        for (int k = 0; k < kCount; ++k) {
          if (winner.at[k] == pixel) sum.at[k] += v.at[k];
        }
      }
    }
    Store(sum, dx + images.In(n, i, j, c));
  }
};

template <typename T>
struct AvgForwardBody {
  Images images;
  const T* x;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t n, int p, int q, int c) const {
    const Axis &h = images.h, &w = images.w;
    Numbers<float, kCount> sum{};
    for (int i = h.InBegin(p); i < h.InEnd(p); ++i) {
      for (int j = w.InBegin(q); j < w.InEnd(q); ++j) {
        const auto v = Load<kCount>(x + images.In(n, i, j, c));
        for (int k = 0; k < kCount; ++k) sum.at[k] += v.at[k];
      }
    }
    const float area = static_cast<float>(h.kernel * w.kernel);
    for (float& each : sum.at) each = each / area;
    Store(sum, y + images.Out(n, p, q, c));
  }
};

template <typename T>
struct AvgBackwardBody {
  Images images;
  const T* dy;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t n, int i, int j, int c) const {
    const Axis &h = images.h, &w = images.w;
    Numbers<float, kCount> sum{};
    for (int p = h.OutBegin(i); p < h.OutEnd(i); ++p) {
      for (int q = w.OutBegin(j); q < w.OutEnd(j); ++q) {
        const auto v = Load<kCount>(dy + images.Out(n, p, q, c));
        for (int k = 0; k < kCount; ++k) sum.at[k] += v.at[k];
      }
    }
    const float area = static_cast<float>(h.kernel * w.kernel);
    for (float& each : sum.at) each = each / area;
    Store(sum, dx + images.In(n, i, j, c));
  }
};

// No samples: no elements, and perhaps no memory.
template <typename T>
T* DataOfImages(const Tensor& t) {
  return t.numel() == 0 ? nullptr : Data<T>(t);
}

struct MaxPool2dForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window, In x,
                          Tensor& y, Tensor& argmax) {
    const MaxForwardBody<T> body{ImagesOf(window, x, y), DataOfImages<T>(x),
                                 DataOfImages<T>(y),
                                 DataOfImages<std::int32_t>(argmax)};
    const bool aligned =
        IsAligned(body.x) && IsAligned(body.y) && IsAligned(body.argmax);
    return ForEachPixel<kVectorOf<T>>("MaxPool2dForward", cuda, y, aligned,
                                      body);
  }
};

struct MaxPool2dBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window, In dy,
                          In argmax, Tensor& dx) {
    const MaxBackwardBody<T> body{ImagesOf(window, dx, dy), DataOfImages<T>(dy),
                                  DataOfImages<std::int32_t>(argmax),
                                  DataOfImages<T>(dx)};
    const bool aligned =
        IsAligned(body.dy) && IsAligned(body.argmax) && IsAligned(body.dx);
    return ForEachPixel<kVectorOf<T>>("MaxPool2dBackward", cuda, dx, aligned,
                                      body);
  }
};

struct AvgPool2dForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window, In x,
                          Tensor& y) {
    const AvgForwardBody<T> body{ImagesOf(window, x, y), DataOfImages<T>(x),
                                 DataOfImages<T>(y)};
    return ForEachPixel<kVectorOf<T>>("AvgPool2dForward", cuda, y,
                                      IsAligned(body.x) && IsAligned(body.y),
                                      body);
  }
};

struct AvgPool2dBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window, In dy,
                          Tensor& dx) {
    const AvgBackwardBody<T> body{ImagesOf(window, dx, dy), DataOfImages<T>(dy),
                                  DataOfImages<T>(dx)};
    return ForEachPixel<kVectorOf<T>>("AvgPool2dBackward", cuda, dx,
                                      IsAligned(body.dy) && IsAligned(body.dx),
                                      body);
  }
};

}  // namespace

void BindPool2d(Pool2dKernels& ops, CudaOps* state) {
  BindFloating<MaxPool2dForward>(ops.MaxPool2dForward, state);
  BindFloating<MaxPool2dBackward>(ops.MaxPool2dBackward, state);
  BindFloating<AvgPool2dForward>(ops.AvgPool2dForward, state);
  BindFloating<AvgPool2dBackward>(ops.AvgPool2dBackward, state);
}

}  // namespace troupe::nn::cuda
