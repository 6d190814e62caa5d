// Convolutions with as many groups as channels: vectors along the channels, so
// that every tap is one fma of whole vectors, anywhere in the image.
//
// An element's sum is over the taps inside the image, in row order. A weight's
// gradient is summed over one row of pixels at a time, then over the rows of an
// image, then over images: chains stay short.

#ifndef NN_KERNELS_CPU_DEPTHWISE_LOOPS_H_
#define NN_KERNELS_CPU_DEPTHWISE_LOOPS_H_

#include <type_traits>

#include "nn/kernels/cpu/conv2d_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/transpose.h"

namespace troupe::nn::cpu {
namespace {

// Number of vectors of channels that are summed at a time: independent chains
// of fma.
constexpr int kDepthwiseVectors = 4;

// Outputs [begin, end) of an axis whose tap at `offset` (dilation * tap - pad)
// is inside the image.
struct Reached {
  Reached(Index offset, Index stride, Index in, Index out)
      : begin(offset >= 0 ? 0 : CeilDiv(-offset, stride)),
        end(offset >= in ? 0 : Min((in - 1 - offset) / stride + 1, out)) {}
  Index begin, end;
};

inline Index DepthwiseScratch(const ImageShape& d) {
  return 2 * Aligned(d.r * d.s * d.c);
}

// Calls visit(integral_constant vectors, channel, mask of a single vector) for
// blocks of channels.
template <typename Visit>
TROUPE_INLINE void ForEachChannels(Index channels, Visit visit) {
  constexpr Index kWide = kDepthwiseVectors * kLanes;
  Index c = 0;
  for (; c + kWide <= channels; c += kWide) {
    visit(std::integral_constant<int, kDepthwiseVectors>(), c, First(kLanes));
  }
  for (; c < channels; c += kLanes) {
    visit(std::integral_constant<int, 1>(), c, First(channels - c));
  }
}

// Load and store a whole vector of several, or the part of a single one.
template <int NV>
TROUPE_INLINE Vec LoadPart(const float* from, Mask part) {
  if constexpr (NV > 1) return Load(from);
  return LoadSome(from, part);
}
template <int NV>
TROUPE_INLINE void StorePart(float* to, Vec v, Mask part) {
  if constexpr (NV > 1) {
    Store(to, v);
  } else {
    StoreSome(to, v, part);
  }
}

// Computes channels [c, c + NV vectors) of one output pixel: its window begins
// at input row h0 and column w0, which may be before the image.
template <int NV>
TROUPE_INLINE void DepthwisePixel(const ImageShape& d, const float* image,
                                  const float* w_RSC, const float* b, Index h0,
                                  Index w0, Index c, Mask part, float* y) {
  Vec sum[NV] = {};
  if (b != nullptr) {
    TROUPE_UNROLL
    for (int v = 0; v < NV; ++v) {
      sum[v] = LoadPart<NV>(b + c + v * kLanes, part);
    }
  }
  for (Index r = 0; r < d.r; ++r) {
    const Index h = h0 + r * d.dilation_h;
    if (h < 0 || h >= d.h) continue;
    for (Index s = 0; s < d.s; ++s) {
      const Index w = w0 + s * d.dilation_w;
      if (w < 0 || w >= d.w) continue;
      const float* from = image + (h * d.w + w) * d.c + c;
      const float* tap = w_RSC + (r * d.s + s) * d.c + c;
      TROUPE_UNROLL
      for (int v = 0; v < NV; ++v) {
        sum[v] = Fma(LoadPart<NV>(from + v * kLanes, part),
                     LoadPart<NV>(tap + v * kLanes, part), sum[v]);
      }
    }
  }
  TROUPE_UNROLL
  for (int v = 0; v < NV; ++v) {
    StorePart<NV>(y + c + v * kLanes, sum[v], part);
  }
}

inline void DepthwisePixels(const ImageShape& d, const float* x,
                            const float* w_RSC, const float* b, float* y) {
  for (Index n = 0; n < d.n; ++n) {
    const float* image = x + n * d.h * d.w * d.c;
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        const Index h0 = p * d.stride_h - d.pad_h;
        const Index w0 = q * d.stride_w - d.pad_w;
        float* to = y + ((n * d.p + p) * d.q + q) * d.c;
        ForEachChannels(d.c, [&](auto vectors, Index c, Mask part) {
          DepthwisePixel<decltype(vectors)::value>(d, image, w_RSC, b, h0, w0,
                                                   c, part, to);
        });
      }
    }
  }
}

inline void DepthwiseForward(const ImageShape& d, const float* x,
                             const float* w, const float* b, float* y,
                             float* scratch) {
  TransposeMatrix(d.c, d.r * d.s, w, d.r * d.s, scratch, d.c, /*pad=*/false,
                  nullptr);
  DepthwisePixels(d, x, scratch, b, y);
}

// With stride 1 the outputs that use a pixel form a window of dy, under the
// flipped filter.
inline void DepthwiseBackwardInputDense(const ImageShape& d, const float* dy,
                                        const float* w_RSC, float* turned,
                                        float* dx) {
  const Index window = d.r * d.s;
  for (Index i = 0; i < window; ++i) {
    CopyFloats(d.c, w_RSC + i * d.c, turned + (window - 1 - i) * d.c);
  }
  ImageShape back = d;
  back.h = d.p, back.w = d.q, back.p = d.h, back.q = d.w;
  back.pad_h = d.dilation_h * (d.r - 1) - d.pad_h;
  back.pad_w = d.dilation_w * (d.s - 1) - d.pad_w;
  DepthwisePixels(back, dy, turned, nullptr, dx);
}

// Adds the gradient of output pixel dy_C to the pixels of its window.
inline void DepthwiseSpread(const ImageShape& d, const float* dy_C,
                            const float* w_RSC, Index h0, Index w0,
                            float* image) {
  for (Index r = 0; r < d.r; ++r) {
    const Index h = h0 + r * d.dilation_h;
    if (h < 0 || h >= d.h) continue;
    for (Index s = 0; s < d.s; ++s) {
      const Index w = w0 + s * d.dilation_w;
      if (w < 0 || w >= d.w) continue;
      float* to = image + (h * d.w + w) * d.c;
      const float* tap = w_RSC + (r * d.s + s) * d.c;
      for (Index c = 0; c < d.c; c += kLanes) {
        const Mask mask = First(d.c - c);
        StoreSome(to + c,
                  Fma(LoadSome(dy_C + c, mask), LoadSome(tap + c, mask),
                      LoadSome(to + c, mask)),
                  mask);
      }
    }
  }
}

inline void DepthwiseBackwardInput(const ImageShape& d, const float* dy,
                                   const float* w, float* dx, float* scratch) {
  TransposeMatrix(d.c, d.r * d.s, w, d.r * d.s, scratch, d.c, /*pad=*/false,
                  nullptr);
  if (d.stride_h == 1 && d.stride_w == 1) {
    DepthwiseBackwardInputDense(d, dy, scratch,
                                scratch + Aligned(d.r * d.s * d.c), dx);
    return;
  }
  ZeroFloats(d.n * d.h * d.w * d.c, dx);
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        DepthwiseSpread(d, dy + ((n * d.p + p) * d.q + q) * d.c, scratch,
                        p * d.stride_h - d.pad_h, q * d.stride_w - d.pad_w,
                        dx + n * d.h * d.w * d.c);
      }
    }
  }
}

// Sums the gradient of one tap over images, channels [c, c + NV vectors).
template <int NV>
TROUPE_INLINE void DepthwiseTap(const ImageShape& d, const float* x,
                                const float* dy, Index r, Index s, Index c,
                                Mask part, float* to) {
  const Index row_offset = r * d.dilation_h - d.pad_h;
  const Index offset = s * d.dilation_w - d.pad_w;
  const Reached rows(row_offset, d.stride_h, d.h, d.p);
  const Reached columns(offset, d.stride_w, d.w, d.q);
  Vec total[NV] = {};
  for (Index n = 0; n < d.n; ++n) {
    Vec image[NV] = {};
    for (Index p = rows.begin; p < rows.end; ++p) {
      const Index h = p * d.stride_h + row_offset;
      Vec row[NV] = {};
      for (Index q = columns.begin; q < columns.end; ++q) {
        const float* gradient = dy + ((n * d.p + p) * d.q + q) * d.c + c;
        const float* pixel =
            x + ((n * d.h + h) * d.w + q * d.stride_w + offset) * d.c + c;
        TROUPE_UNROLL
        for (int v = 0; v < NV; ++v) {
          row[v] = Fma(LoadPart<NV>(gradient + v * kLanes, part),
                       LoadPart<NV>(pixel + v * kLanes, part), row[v]);
        }
      }
      TROUPE_UNROLL
      for (int v = 0; v < NV; ++v) image[v] = Plus(image[v], row[v]);
    }
    TROUPE_UNROLL
    for (int v = 0; v < NV; ++v) total[v] = Plus(total[v], image[v]);
  }
  TROUPE_UNROLL
  for (int v = 0; v < NV; ++v) {
    StorePart<NV>(to + c + v * kLanes, total[v], part);
  }
}

inline void DepthwiseBackwardWeight(const ImageShape& d, const float* x,
                                    const float* dy, bool accumulate, float* dw,
                                    float* scratch) {
  const Index window = d.r * d.s;
  for (Index i = 0; i < window; ++i) {
    ForEachChannels(d.c, [&](auto vectors, Index c, Mask part) {
      DepthwiseTap<decltype(vectors)::value>(d, x, dy, i / d.s, i % d.s, c,
                                             part, scratch + i * d.c);
    });
  }
  float* turned = accumulate ? scratch + Aligned(window * d.c) : dw;
  TransposeMatrix(window, d.c, scratch, d.c, turned, window, /*pad=*/false,
                  nullptr);
  for (Index i = 0; accumulate && i < window * d.c; i += kLanes) {
    const Mask mask = First(window * d.c - i);
    StoreSome(dw + i, Plus(LoadSome(dw + i, mask), LoadSome(turned + i, mask)),
              mask);
  }
}

constexpr void SetDepthwiseLoops(Loops& loops) {
  loops.depthwise_scratch = DepthwiseScratch;
  loops.depthwise_forward = DepthwiseForward;
  loops.depthwise_backward_input = DepthwiseBackwardInput;
  loops.depthwise_backward_weight = DepthwiseBackwardWeight;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_DEPTHWISE_LOOPS_H_
