// Convolutions as matrix products over images in place, without im2col.
//
// In (N, H, W, C) the S columns of one filter row and their C channels are one
// run of S C floats, and the next output pixel's run begins stride C later. So
// with R segments of depth S C
//
//     forward          pixels of a row x O  =  runs of x   *  w as [R][S C][O]
//     backward input   runs of dx x rows    += dy          *  w as [O][R][S C]
//     backward weight  O x runs             += dy^T        *  runs of x
//                      (or runs x O, whichever fills vectors better)
//
// are products of strided matrices. If the columns of a filter row are apart
// (dilation), each is a run of its own, of C floats. With few output channels
// the forward pass is planar instead: O x pixels of a row, vectors along the
// row. Padding is added in a copy of one image at a time.

#ifndef NN_KERNELS_CPU_CONV2D_LOOPS_H_
#define NN_KERNELS_CPU_CONV2D_LOOPS_H_

#include "nn/kernels/cpu/linear_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/product.h"
#include "nn/kernels/cpu/transpose.h"

namespace troupe::nn::cpu {
namespace {

inline bool HasPadding(const ImageShape& d) {
  return d.pad_h != 0 || d.pad_w != 0;
}
inline Index PaddedH(const ImageShape& d) { return d.h + 2 * d.pad_h; }
inline Index PaddedW(const ImageShape& d) { return d.w + 2 * d.pad_w; }
inline Index PaddedImage(const ImageShape& d) {
  return PaddedH(d) * PaddedW(d) * d.c;
}

// Runs of one filter row: their number, length, and distance in x.
struct Runs {
  explicit Runs(const ImageShape& d)
      : count(d.dilation_w == 1 ? 1 : d.s),
        length(d.dilation_w == 1 ? d.s * d.c : d.c),
        step(d.dilation_w * d.c) {}
  Index count, length, step;
};

// Whether vectors are fuller along a row of pixels than along the channels.
inline bool GoesPlanar(const ImageShape& d) {
  return d.stride_w == 1 && d.dilation_h == 1 && d.dilation_w == 1 &&
         d.o < kLanes && 5 * d.o * Padded(d.q) < 4 * d.q * Padded(d.o);
}

// Rounds up so that every part of the scratch memory starts on a cache line.
constexpr Index Aligned(Index floats) { return CeilDiv(floats, 16) * 16; }

inline Index ConvScratch(const ImageShape& d) {
  const Index taps = d.r * d.s * d.c;
  const Index weights = 2 * Aligned(taps * Padded(Max(d.o, 1)));
  return weights + Aligned(PaddedImage(d)) + Aligned(d.o * Padded(d.q));
}

inline void ZeroFloats(Index n, float* x) {
  for (Index i = 0; i < n; i += kLanes) {
    StoreSome(x + i, Zero(), First(n - i));
  }
}

inline void CopyFloats(Index n, const float* x, float* y) {
  for (Index i = 0; i < n; i += kLanes) {
    const Mask mask = First(n - i);
    StoreSome(y + i, LoadSome(x + i, mask), mask);
  }
}

// Returns the image with its border of zeros, in `to`; `x` itself without
// padding.
inline const float* PadImage(const ImageShape& d, const float* x, float* to) {
  if (!HasPadding(d)) return x;
  ZeroFloats(PaddedImage(d), to);
  for (Index h = 0; h < d.h; ++h) {
    CopyFloats(d.w * d.c, x + h * d.w * d.c,
               to + ((h + d.pad_h) * PaddedW(d) + d.pad_w) * d.c);
  }
  return to;
}

// Copies [H][W][C] -> [H][C][W] with the border of zeros.
inline void PlanarImage(const ImageShape& d, const float* x, float* to) {
  const Index width = PaddedW(d);
  if (HasPadding(d)) ZeroFloats(PaddedImage(d), to);
  for (Index h = 0; h < d.h; ++h) {
    TransposeMatrix(d.w, d.c, x + h * d.w * d.c, d.c,
                    to + (h + d.pad_h) * d.c * width + d.pad_w, width,
                    /*pad=*/false, nullptr);
  }
}

// Computes a product of rows of pixels: in one call over all segments, or
// segment by segment if one fma chain would become long.
template <bool kPacked>
void MultiplySegments(Product p) {
  if (p.depth * p.segments <= 2 * kDepth) {
    Multiply<kPacked>(p);
    return;
  }
  const Index segments = p.segments;
  p.segments = 1;
  for (Index g = 0; g < segments; ++g) {
    Multiply<kPacked>(p);
    p.a += p.a_segment;
    p.b += p.b_segment;
    p.start = nullptr;
    p.accumulate = true;
  }
}

// Packs w[O][C][R][S] -> [R][S][C][Padded(O)].
inline void PackForwardWeights(const ImageShape& d, const float* w, float* temp,
                               float* packed) {
  const Index width = Padded(d.o), window = d.r * d.s;
  TransposeMatrix(d.o, d.c * window, w, d.c * window, temp, width,
                  /*pad=*/true, nullptr);
  for (Index c = 0; c < d.c; ++c) {
    for (Index rs = 0; rs < window; ++rs) {
      CopyFloats(width, temp + (c * window + rs) * width,
                 packed + (rs * d.c + c) * width);
    }
  }
}

inline void ConvForwardChannels(const ImageShape& d, const float* x,
                                const float* w, const float* b, float* y,
                                float* scratch) {
  const Index width = Padded(d.o);
  const Index weights = Aligned(d.r * d.s * d.c * width);
  float* packed = scratch;
  float* image = scratch + 2 * weights;
  PackForwardWeights(d, w, scratch + weights, packed);
  const Index row = PaddedW(d) * d.c;
  const Runs runs(d);
  const bool whole_rows = runs.count == 1;
  Product m;
  m.rows = d.q;
  m.cols = d.o;
  m.depth = runs.length;
  m.segments = whole_rows ? d.r : d.s;
  m.a_stride = d.stride_w * d.c;
  m.a_segment = whole_rows ? d.dilation_h * row : runs.step;
  m.b_stride = width;
  m.b_segment = m.depth * width;
  m.c_stride = d.o;
  for (Index n = 0; n < d.n; ++n) {
    const float* from = PadImage(d, x + n * d.h * d.w * d.c, image);
    for (Index p = 0; p < d.p; ++p) {
      m.c = y + (n * d.p + p) * d.q * d.o;
      for (Index r = 0; r < (whole_rows ? 1 : d.r); ++r) {
        m.a = from + (p * d.stride_h + r * d.dilation_h) * row;
        m.b = packed + r * d.s * d.c * width;
        m.start = r == 0 ? b : nullptr;
        m.accumulate = r > 0;
        MultiplySegments</*kPacked=*/false>(m);
      }
    }
  }
}

// Reorders w[O][C][R][S] -> [O][R][C][S].
inline void SwapRowsAndChannels(const ImageShape& d, const float* w,
                                float* swapped) {
  for (Index o = 0; o < d.o; ++o) {
    for (Index c = 0; c < d.c; ++c) {
      for (Index r = 0; r < d.r; ++r) {
        const float* from = w + ((o * d.c + c) * d.r + r) * d.s;
        float* to = swapped + ((o * d.r + r) * d.c + c) * d.s;
        for (Index s = 0; s < d.s; ++s) to[s] = from[s];
      }
    }
  }
}

inline void ConvForwardPlanar(const ImageShape& d, const float* x,
                              const float* w, const float* b, float* y,
                              float* scratch) {
  float* image = scratch + Aligned(d.o * d.r * d.s * d.c);
  float* row = image + Aligned(PaddedImage(d));
  SwapRowsAndChannels(d, w, scratch);
  Product m;
  m.rows = d.o;
  m.cols = d.q;
  m.depth = d.s;
  m.segments = d.r * d.c;
  m.a = scratch;
  m.a_stride = d.r * d.c * d.s;
  m.a_segment = d.s;
  m.b_stride = 1;
  m.b_segment = PaddedW(d);
  m.c = row;
  m.c_stride = Padded(d.q);
  for (Index n = 0; n < d.n; ++n) {
    PlanarImage(d, x + n * d.h * d.w * d.c, image);
    for (Index p = 0; p < d.p; ++p) {
      m.b = image + p * d.stride_h * d.c * m.b_segment;
      MultiplySegments</*kPacked=*/false>(m);
      TransposeMatrix(d.o, d.q, row, m.c_stride, y + (n * d.p + p) * d.q * d.o,
                      d.o, /*pad=*/false, b);
    }
  }
}

inline void ConvForward(const ImageShape& d, const float* x, const float* w,
                        const float* b, float* y, float* scratch) {
  if (GoesPlanar(d)) {
    ConvForwardPlanar(d, x, w, b, y, scratch);
  } else {
    ConvForwardChannels(d, x, w, b, y, scratch);
  }
}

// Adds into rows of dx that are stride_h apart, one per output row, so that the
// sums of one product are disjoint.
inline void ConvBackwardInput(const ImageShape& d, const float* dy,
                              const float* w, float* dx, float* scratch) {
  const Index window = d.r * d.s, taps = window * d.c;
  const Index row = PaddedW(d) * d.c;
  const Runs runs(d);
  float* image = scratch + Aligned(d.o * taps);
  for (Index o = 0; o < d.o; ++o) {  // -> [O][R][S][C]
    TransposeMatrix(d.c, window, w + o * d.c * window, window,
                    scratch + o * d.c * window, d.c, /*pad=*/false, nullptr);
  }
  Product m;
  m.rows = d.p;
  m.cols = runs.length;
  m.depth = d.o;
  m.a_stride = d.q * d.o;
  m.b_stride = taps;
  m.c_stride = d.stride_h * row;
  m.accumulate = true;
  for (Index n = 0; n < d.n; ++n) {
    float* to = HasPadding(d) ? image : dx + n * d.h * d.w * d.c;
    ZeroFloats(PaddedImage(d), to);
    for (Index r = 0; r < d.r; ++r) {
      for (Index i = 0; i < runs.count; ++i) {
        m.b = scratch + (r * runs.count + i) * runs.length;
        for (Index q = 0; q < d.q; ++q) {
          m.a = dy + (n * d.p * d.q + q) * d.o;
          m.c = to + r * d.dilation_h * row + i * runs.step +
                q * d.stride_w * d.c;
          Multiply</*kPacked=*/false>(m);
        }
      }
    }
    if (!HasPadding(d)) continue;
    for (Index h = 0; h < d.h; ++h) {
      CopyFloats(d.w * d.c, to + (h + d.pad_h) * row + d.pad_w * d.c,
                 dx + (n * d.h + h) * d.w * d.c);
    }
  }
}

// Whether the weight gradient has O along its vectors, rather than runs of S C,
// which need one transposition less.
inline bool GradientGoesByOutputs(const ImageShape& d) {
  const Index run = Runs(d).length;
  return 4 * d.o * Padded(run) > 5 * run * Padded(d.o);
}

// sums[O][R][S C] = sum over pixels of dy^T x; [R][S C][O] if `by_outputs`.
inline void SumWeightGradient(const ImageShape& d, const float* x,
                              const float* dy, bool by_outputs, float* image,
                              float* sums) {
  const Index taps = d.r * d.s * d.c, row = PaddedW(d) * d.c;
  const Runs runs(d);
  if (d.n == 0) ZeroFloats(d.o * taps, sums);
  Product m;
  m.rows = by_outputs ? runs.length : d.o;
  m.cols = by_outputs ? d.o : runs.length;
  m.depth = d.q;
  m.segments = d.p;
  m.c_stride = by_outputs ? d.o : taps;
  Index& x_stride = by_outputs ? m.a_stride : m.b_stride;
  Index& x_segment = by_outputs ? m.a_segment : m.b_segment;
  Index& dy_stride = by_outputs ? m.b_stride : m.a_stride;
  Index& dy_segment = by_outputs ? m.b_segment : m.a_segment;
  x_stride = d.stride_w * d.c;
  x_segment = d.stride_h * row;
  dy_stride = d.o;
  dy_segment = d.q * d.o;
  for (Index n = 0; n < d.n; ++n) {
    const float* from = PadImage(d, x + n * d.h * d.w * d.c, image);
    const float* gradient = dy + n * d.p * d.q * d.o;
    m.accumulate = n > 0;
    for (Index k = 0; k < d.r * runs.count; ++k) {
      const float* run = from + k / runs.count * d.dilation_h * row +
                         k % runs.count * runs.step;
      m.a = by_outputs ? run : gradient;
      m.b = by_outputs ? gradient : run;
      m.c = sums + k * runs.length * (by_outputs ? d.o : 1);
      MultiplySegments</*kPacked=*/true>(m);
    }
  }
}

inline void ConvBackwardWeight(const ImageShape& d, const float* x,
                               const float* dy, bool accumulate, float* dw,
                               float* scratch) {
  const Index window = d.r * d.s, taps = d.c * window;
  const Index weights = Aligned(d.o * taps);
  float* other = scratch + weights;
  const bool by_outputs = GradientGoesByOutputs(d);
  float* sums = by_outputs ? other : scratch;
  SumWeightGradient(d, x, dy, by_outputs, scratch + 2 * weights, sums);
  if (by_outputs) {  // [R][S][C][O] -> [O][R][S][C]
    TransposeMatrix(taps, d.o, sums, d.o, scratch, taps, /*pad=*/false,
                    nullptr);
  }
  float* swapped = accumulate ? other : dw;
  for (Index o = 0; o < d.o; ++o) {  // [O][R][S][C] -> [O][C][R][S]
    TransposeMatrix(window, d.c, scratch + o * taps, d.c, swapped + o * taps,
                    window, /*pad=*/false, nullptr);
  }
  if (!accumulate) return;
  for (Index i = 0; i < d.o * taps; i += kLanes) {
    const Mask mask = First(d.o * taps - i);
    StoreSome(dw + i, Plus(LoadSome(dw + i, mask), LoadSome(swapped + i, mask)),
              mask);
  }
}

constexpr void SetConv2dLoops(Loops& loops) {
  loops.conv_scratch = ConvScratch;
  loops.conv_forward = ConvForward;
  loops.conv_backward_input = ConvBackwardInput;
  loops.conv_backward_weight = ConvBackwardWeight;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONV2D_LOOPS_H_
