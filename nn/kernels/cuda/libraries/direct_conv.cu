#include "nn/kernels/cuda/libraries/direct_conv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"

// Letters are those of conv_spec.h. A thread computes one element of the result
// at a time; adjacent threads compute adjacent channels.

namespace troupe::nn::cuda {
namespace {

// One axis of the window.
struct TapAxis {
  int in, out;  // extents
  int taps, stride, pad, dilation;

  // Return the input at tap `t` of output `o` (In), or the output whose tap `t`
  // is input `i` (Out); -1 if there is none.
  __device__ __forceinline__ int In(int o, int t) const {
    const int i = o * stride - pad + t * dilation;
    return i < in ? max(i, -1) : -1;
  }
  __device__ __forceinline__ int Out(int i, int t) const {
    const int at = i + pad - t * dilation;
    if (at < 0 || at % stride != 0) return -1;
    return at / stride < out ? at / stride : -1;
  }
};

struct DirectShape {
  std::int64_t N;
  int C, O;
  int group_C, group_O;  // channels of a group
  TapAxis h, w;          // H to P by R, W to Q by S

  __device__ __forceinline__ std::int64_t X(std::int64_t n, int i, int j,
                                            int c) const {
    return ((n * h.in + i) * w.in + j) * C + c;
  }
  __device__ __forceinline__ std::int64_t Y(std::int64_t n, int p, int q,
                                            int o) const {
    return ((n * h.out + p) * w.out + q) * O + o;
  }
  // `c` counts from the first channel of the group.
  __device__ __forceinline__ std::int64_t Weight(int o, int r, int s,
                                                 int c) const {
    return ((static_cast<std::int64_t>(o) * h.taps + r) * w.taps + s) *
               group_C +
           c;
  }
  // The indices of element `at` of images [N, rows, columns, channels].
  struct Place {
    std::int64_t n;
    int i, j, c;
  };
  __device__ __forceinline__ static Place PlaceOf(std::int64_t at, int rows,
                                                  int columns, int channels) {
    const std::int64_t pixel = at / channels, row = pixel / columns;
    return {row / rows, static_cast<int>(row % rows),
            static_cast<int>(pixel % columns), static_cast<int>(at % channels)};
  }
};

DirectShape ShapeOf(const ConvSpec& s) {
  const auto number = [](std::int64_t i) { return static_cast<int>(i); };
  const Window2d& win = s.window;
  return {s.N,
          number(s.C),
          number(s.O),
          number(s.group_channels()),
          number(s.O / s.groups),
          {number(s.H), number(s.P()), number(win.kernel_h),
           number(win.stride_h), number(win.pad_h), number(win.dilation_h)},
          {number(s.W), number(s.Q()), number(win.kernel_w),
           number(win.stride_w), number(win.pad_w), number(win.dilation_w)}};
}

template <typename T>
struct DirectForward {
  DirectShape d;
  const T* x;
  const T* w;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const auto [n, p, q, o] = DirectShape::PlaceOf(at, d.h.out, d.w.out, d.O);
    const int first = o / d.group_O * d.group_C;
    float sum = 0;
    for (int r = 0; r < d.h.taps; ++r) {
      const int i = d.h.In(p, r);
      for (int s = 0; i >= 0 && s < d.w.taps; ++s) {
        const int j = d.w.In(q, s);
        if (j < 0) continue;
        const T* pixel = x + d.X(n, i, j, first);
        const T* tap = w + d.Weight(o, r, s, 0);
        for (int c = 0; c < d.group_C; ++c) {
          sum = fmaf(Widen(pixel[c]), Widen(tap[c]), sum);
        }
      }
    }
    Round(sum, y[at]);
  }
};

template <typename T>
struct DirectBackwardInput {
  DirectShape d;
  const T* dy;
  const T* w;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const auto [n, i, j, channel] =
        DirectShape::PlaceOf(at, d.h.in, d.w.in, d.C);
    const int first = channel / d.group_C * d.group_O;
    const int c = channel % d.group_C;
    float sum = 0;
    for (int r = d.h.taps - 1; r >= 0; --r) {
      const int p = d.h.Out(i, r);
      for (int s = d.w.taps - 1; p >= 0 && s >= 0; --s) {
        const int q = d.w.Out(j, s);
        if (q < 0) continue;
        for (int o = first; o < first + d.group_O; ++o) {
          sum = fmaf(Widen(dy[d.Y(n, p, q, o)]), Widen(w[d.Weight(o, r, s, c)]),
                     sum);
        }
      }
    }
    Round(sum, dx[at]);
  }
};

// Computes a weight's sum over one band of the pixel rows of all samples.
template <typename T>
struct DirectBackwardWeight {
  DirectShape d;
  std::int64_t weights, rows_of_band;
  const T* x;
  const T* dy;
  float* of_band;  // [bands, weights]

  template <int kCount>
  __device__ void At(std::int64_t at) const {
    const std::int64_t band = at / weights;
    const int k = static_cast<int>(at % weights);
    const int o = k % d.O, c = k / d.O % d.group_C;
    const int tap = k / d.O / d.group_C;
    const int r = tap / d.w.taps, s = tap % d.w.taps;
    const int channel = o / d.group_O * d.group_C + c;
    const std::int64_t rows = d.N * d.h.out;
    const std::int64_t begin = band * rows_of_band;
    const std::int64_t end =
        begin + rows_of_band < rows ? begin + rows_of_band : rows;
    float sum = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / d.h.out;
      const int p = static_cast<int>(row % d.h.out), i = d.h.In(p, r);
      float of_row = 0;
      for (int q = 0; i >= 0 && q < d.w.out; ++q) {
        const int j = d.w.In(q, s);
        if (j < 0) continue;
        of_row = fmaf(Widen(dy[d.Y(n, p, q, o)]),
                      Widen(x[d.X(n, i, j, channel)]), of_row);
      }
      sum += of_row;
    }
    of_band[band * weights + d.Weight(o, r, s, c)] = sum;
  }
};

constexpr std::int64_t kRowsOfBandMin = 8;
constexpr std::int64_t kBandsMax = 64;

std::int64_t BandsOf(const ConvSpec& spec) {
  return std::clamp<std::int64_t>(spec.N * spec.P() / kRowsOfBandMin, 1,
                                  kBandsMax);
}

// Returns the bytes of the sums of all bands, rounded up so that the scratch
// memory behind them is aligned.
std::size_t BandBytes(const ConvSpec& spec) {
  const std::int64_t floats = BandsOf(spec) * spec.weight_elems();
  return static_cast<std::size_t>((floats + 3) / 4 * 4) * sizeof(float);
}

template <typename T>
absl::Status RunDirect(const ConvSpec& spec, const ConvOperands& operands,
                       void* scratch, cudaStream_t stream) {
  const DirectShape shape = ShapeOf(spec);
  T* const x = static_cast<T*>(operands.image);
  T* const w = static_cast<T*>(operands.weight);
  T* const y = static_cast<T*>(operands.output);
  if (spec.way == ConvWay::kForward) {
    return ForEachElement<1>("DirectConv.Forward", stream, spec.output_elems(),
                             false, DirectForward<T>{shape, x, w, y});
  }
  if (spec.way == ConvWay::kBackwardInput) {
    return ForEachElement<1>("DirectConv.BackwardInput", stream,
                             spec.image_elems(), false,
                             DirectBackwardInput<T>{shape, y, w, x});
  }
  const std::int64_t bands = BandsOf(spec), weights = spec.weight_elems();
  const std::int64_t rows = spec.N * spec.P();
  float* const of_band = static_cast<float*>(scratch);
  TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
      "DirectConv.BackwardWeight", stream, bands * weights, false,
      DirectBackwardWeight<T>{shape, weights, (rows + bands - 1) / bands, x, y,
                              of_band}));
  return ColumnSums({bands, weights}, {DType::kF32, of_band},
                    /*accumulate=*/false, {spec.out_dtype, operands.weight},
                    static_cast<char*>(scratch) + BandBytes(spec), stream);
}

}  // namespace

std::size_t DirectConvScratchBytes(const ConvSpec& spec) {
  if (spec.way != ConvWay::kBackwardWeight) return 0;
  return BandBytes(spec) +
         ColumnSumsScratchBytes({BandsOf(spec), spec.weight_elems()});
}

absl::Status DirectConv(const ConvSpec& spec, const ConvOperands& operands,
                        void* scratch, cudaStream_t stream) {
  return ForFloating<void>("DirectConv", spec.dtype,
                           Device{DeviceType::kCuda, 0}, [&](auto element) {
                             return RunDirect<decltype(element)>(
                                 spec, operands, scratch, stream);
                           });
}

}  // namespace troupe::nn::cuda
