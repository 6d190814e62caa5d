#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/image_grid.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

// Letters: N batch, C channels, H W input pixels, P Q output pixels. A thread
// computes several channels of one pixel. In the backward pass, a pixel of the
// input gathers from the windows that contain it, in row order: no two threads
// write one element.

namespace troupe::nn::cuda {
namespace {

// One axis of a window over images.
struct Axis {
  int in, out;  // extents
  int kernel, stride, pad;

  // Return the range [begin, end) of the inputs of output `o`, and of the
  // outputs of input `i`.
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

// An axis with the divisor of a mean.
struct MeanAxis : Axis {
  bool padded;  // whether the divisor counts the padding

  __device__ __forceinline__ int Count(int o) const {
    const int first = o * stride - pad;
    return padded ? min(first + kernel, in + pad) - first
                  : InEnd(o) - InBegin(o);
  }
};

// An axis of adaptive pooling: windows are as equal as the extents allow.
struct AdaptiveAxis {
  int in, out;

  __device__ __forceinline__ static int Floor(int i, int from, int to) {
    return static_cast<int>(static_cast<std::int64_t>(i) * to / from);
  }
  __device__ __forceinline__ static int Ceil(int i, int from, int to) {
    return static_cast<int>((static_cast<std::int64_t>(i) * to + from - 1) /
                            from);
  }
  __device__ __forceinline__ int InBegin(int o) const {
    return Floor(o, out, in);
  }
  __device__ __forceinline__ int InEnd(int o) const {
    return Ceil(o + 1, out, in);
  }
  // Window o has input i if o in < (i + 1) out and (o + 1) in > i out.
  __device__ __forceinline__ int OutBegin(int i) const {
    return Floor(i, in, out);
  }
  __device__ __forceinline__ int OutEnd(int i) const {
    return Ceil(i + 1, in, out);
  }
  __device__ __forceinline__ int Count(int o) const {
    return InEnd(o) - InBegin(o);
  }
};

template <typename Axis>
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

Images<Axis> ImagesOf(const Window2d& window, const Tensor& x,
                      const Tensor& y) {
  return {x.dim(0), static_cast<int>(x.dim(3)),
          AxisOf(x.dim(1), y.dim(1), window.kernel_h, window.stride_h,
                 window.pad_h),
          AxisOf(x.dim(2), y.dim(2), window.kernel_w, window.stride_w,
                 window.pad_w)};
}

Images<MeanAxis> ImagesOf(const Window2d& window, AvgDivisor divisor,
                          const Tensor& x, const Tensor& y) {
  const Images<Axis> images = ImagesOf(window, x, y);
  const bool padded = divisor == AvgDivisor::kPaddedImage;
  return {images.N, images.C, {images.h, padded}, {images.w, padded}};
}

Images<AdaptiveAxis> ImagesOf(const Tensor& x, const Tensor& y) {
  const auto axis = [&](int i) {
    return AdaptiveAxis{static_cast<int>(x.dim(i)), static_cast<int>(y.dim(i))};
  };
  return {x.dim(0), static_cast<int>(x.dim(3)), axis(1), axis(2)};
}

template <typename T>
struct MaxForwardBody {
  Images<Axis> images;
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

  // Keeps the larger value: the first of equal values, or the last NaN.
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
  Images<Axis> images;
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

template <typename T, typename Axis>
struct AvgForwardBody {
  Images<Axis> images;
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
    const float area = static_cast<float>(h.Count(p) * w.Count(q));
    for (float& each : sum.at) each = each / area;
    Store(sum, y + images.Out(n, p, q, c));
  }
};

template <typename T, typename Axis>
struct AvgBackwardBody {
  Images<Axis> images;
  const T* dy;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t n, int i, int j, int c) const {
    const Axis &h = images.h, &w = images.w;
    Numbers<float, kCount> sum{};
    for (int p = h.OutBegin(i); p < h.OutEnd(i); ++p) {
      for (int q = w.OutBegin(j); q < w.OutEnd(j); ++q) {
        const auto v = Load<kCount>(dy + images.Out(n, p, q, c));
        const float area = static_cast<float>(h.Count(p) * w.Count(q));
        for (int k = 0; k < kCount; ++k) sum.at[k] += v.at[k] / area;
      }
    }
    Store(sum, dx + images.In(n, i, j, c));
  }
};

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

template <typename T, typename Axis>
absl::Status Average(base::KernelName name, const CudaOps& cuda,
                     const Images<Axis>& images, In x, Tensor& y) {
  const AvgForwardBody<T, Axis> body{images, DataOfImages<T>(x),
                                     DataOfImages<T>(y)};
  return ForEachPixel<kVectorOf<T>>(
      name, cuda, y, IsAligned(body.x) && IsAligned(body.y), body);
}

template <typename T, typename Axis>
absl::Status AverageBackward(base::KernelName name, const CudaOps& cuda,
                             const Images<Axis>& images, In dy, Tensor& dx) {
  const AvgBackwardBody<T, Axis> body{images, DataOfImages<T>(dy),
                                      DataOfImages<T>(dx)};
  return ForEachPixel<kVectorOf<T>>(
      name, cuda, dx, IsAligned(body.dy) && IsAligned(body.dx), body);
}

struct AvgPool2dForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window,
                          AvgDivisor divisor, In x, Tensor& y) {
    return Average<T>("AvgPool2dForward", cuda, ImagesOf(window, divisor, x, y),
                      x, y);
  }
};

struct AvgPool2dBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const Window2d& window,
                          AvgDivisor divisor, In dy, Tensor& dx) {
    return AverageBackward<T>("AvgPool2dBackward", cuda,
                              ImagesOf(window, divisor, dx, dy), dy, dx);
  }
};

struct AdaptiveAvgPool2dForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& y) {
    return Average<T>("AdaptiveAvgPool2dForward", cuda, ImagesOf(x, y), x, y);
  }
};

struct AdaptiveAvgPool2dBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In dy, Tensor& dx) {
    return AverageBackward<T>("AdaptiveAvgPool2dBackward", cuda,
                              ImagesOf(dx, dy), dy, dx);
  }
};

}  // namespace

template <>
void BindFamily(Pool2dKernels& ops, CudaOps* state) {
  BindFloating<MaxPool2dForward>(ops.MaxPool2dForward, state);
  BindFloating<MaxPool2dBackward>(ops.MaxPool2dBackward, state);
  BindFloating<AvgPool2dForward>(ops.AvgPool2dForward, state);
  BindFloating<AvgPool2dBackward>(ops.AvgPool2dBackward, state);
  BindFloating<AdaptiveAvgPool2dForward>(ops.AdaptiveAvgPool2dForward, state);
  BindFloating<AdaptiveAvgPool2dBackward>(ops.AdaptiveAvgPool2dBackward, state);
}

}  // namespace troupe::nn::cuda
