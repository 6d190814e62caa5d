// Pooling of (N, H, W, C), a vector of channels at a time.

#ifndef NN_KERNELS_CPU_POOL2D_LOOPS_H_
#define NN_KERNELS_CPU_POOL2D_LOOPS_H_

#include "nn/kernels/cpu/conv2d_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// The part of a window inside the image: [h0, h1) x [w0, w1).
struct Inside {
  Index h0, h1, w0, w1;
};

TROUPE_INLINE Inside InsideOf(const ImageShape& d, Index p, Index q) {
  const Index h = p * d.stride_h - d.pad_h, w = q * d.stride_w - d.pad_w;
  return {Max(h, 0), Min(h + d.r, d.h), Max(w, 0), Min(w + d.s, d.w)};
}

// Calls visit(image, output pixel, inside) for every window.
template <typename Visit>
TROUPE_INLINE void ForEachWindow(const ImageShape& d, Visit visit) {
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        visit(n * d.h * d.w, (n * d.p + p) * d.q + q, InsideOf(d, p, q));
      }
    }
  }
}

// Whether the windows cover each input pixel exactly once.
inline bool Tiles(const ImageShape& d) {
  return d.stride_h == d.r && d.stride_w == d.s && d.pad_h == 0 &&
         d.pad_w == 0 && d.p * d.r == d.h && d.q * d.s == d.w;
}

#if defined(__AVX512F__)

// Lanes for 2x2 windows of few channels: a vector is several windows of a row.
// The left and right pixels of the windows are interleaved, in at most two
// vectors.
struct Pairs {
  Index windows;                             // per vector
  Index lanes;                               // lanes in use
  std::int32_t left[kLanes], right[kLanes];  // indices in two vectors of pixels
  std::int32_t low[kLanes], high[kLanes];    // inverse permutation
  std::int32_t step[kLanes];                 // pixel of the lane's window

  explicit Pairs(Index c) : windows(kLanes / c), lanes(windows * c) {
    for (Index i = 0; i < kLanes; ++i) {
      const Index in = Min(i, lanes - 1);
      left[i] = static_cast<std::int32_t>(in / c * 2 * c + in % c);
      right[i] = static_cast<std::int32_t>(left[i] + c);
      step[i] = static_cast<std::int32_t>(in / c * 2);
      low[i] = Source(i, c);
      high[i] = Source(Min(i + kLanes, 2 * lanes - 1), c);
    }
  }
  // Returns the lane of pixel element `i` in the left columns, or (+ kLanes)
  // the right ones.
  static std::int32_t Source(Index i, Index c) {
    const Index lane = i / (2 * c) * c + i % c;
    return static_cast<std::int32_t>(i / c % 2 ? lane + kLanes : lane);
  }
};

inline bool IsHalvingOfFewChannels(const ImageShape& d) {
  return d.r == 2 && d.s == 2 && d.stride_h == 2 && d.stride_w == 2 &&
         d.pad_h == 0 && d.pad_w == 0 && 2 * d.p <= d.h && 2 * d.q <= d.w &&
         2 * d.c <= kLanes;
}

// Calls visit(input row's pixel, input element, output element, lanes) for each
// vector of windows.
template <typename Visit>
TROUPE_INLINE void ForEachPairs(const ImageShape& d, const Pairs& pairs,
                                Visit visit) {
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; q += pairs.windows) {
        const Index pixel = 2 * p * d.w + 2 * q;
        visit(pixel, (n * d.h * d.w + pixel) * d.c,
              ((n * d.p + p) * d.q + q) * d.c,
              Min(pairs.windows, d.q - q) * d.c);
      }
    }
  }
}

inline void HalveForward(const ImageShape& d, const float* x, float* y,
                         std::int32_t* at) {
  const Pairs pairs(d.c);
  const Vec step = LoadBits(pairs.step);
  const auto width = static_cast<std::int32_t>(d.w);
  ForEachPairs(d, pairs, [&](Index pixel, Index in, Index out, Index lanes) {
    const Mask low = First(2 * lanes), high = First(2 * lanes - kLanes);
    Vec best = Zero(), where = AddBits(step, static_cast<std::int32_t>(pixel));
    Vec here = where;
    TROUPE_UNROLL
    for (int row = 0; row < 2; ++row) {
      const float* from = x + in + row * d.w * d.c;
      const Vec a = LoadSome(from, low), b = LoadSome(from + kLanes, high);
      TROUPE_UNROLL
      for (int column = 0; column < 2; ++column) {
        const Vec v = PickFromTwo(a, b, column ? pairs.right : pairs.left);
        const Vec pixels = AddBits(here, row * width + column);
        const Truth wins = Either(Greater(v, best), IsNan(v));
        const bool first = row == 0 && column == 0;
        best = first ? v : Choose(wins, v, best);
        where = first ? pixels : Choose(wins, pixels, where);
      }
    }
    const Mask mask = First(lanes);
    StoreSome(y + out, best, mask);
    StoreSomeBits(at + out, where, mask);
  });
}

inline void HalveBackward(const ImageShape& d, const float* dy,
                          const std::int32_t* at, float* dx) {
  const Pairs pairs(d.c);
  const Vec step = LoadBits(pairs.step);
  const auto width = static_cast<std::int32_t>(d.w);
  ForEachPairs(d, pairs, [&](Index pixel, Index in, Index out, Index lanes) {
    const Mask mask = First(lanes);
    const Vec g = LoadSome(dy + out, mask);
    const Vec where = LoadSomeBits(at + out, mask);
    const Vec here = AddBits(step, static_cast<std::int32_t>(pixel));
    TROUPE_UNROLL
    for (int row = 0; row < 2; ++row) {
      const Vec first = AddBits(here, row * width);
      const Vec left = Choose(SameBits(where, first), g, Zero());
      const Vec right = Choose(SameBits(where, AddBits(first, 1)), g, Zero());
      float* to = dx + in + row * d.w * d.c;
      StoreSome(to, PickFromTwo(left, right, pairs.low), First(2 * lanes));
      StoreSome(to + kLanes, PickFromTwo(left, right, pairs.high),
                First(2 * lanes - kLanes));
    }
  });
}

#endif

inline void MaxPoolForward(const ImageShape& d, const float* x, float* y,
                           std::int32_t* at) {
#if defined(__AVX512F__)
  if (IsHalvingOfFewChannels(d)) {
    HalveForward(d, x, y, at);
    return;
  }
#endif
  ForEachWindow(d, [&](Index image, Index out, const Inside& in) {
    for (Index c = 0; c < d.c; c += kLanes) {
      const Mask mask = First(d.c - c);
      const Index first = in.h0 * d.w + in.w0;
      Vec best = LoadSome(x + (image + first) * d.c + c, mask);
      Vec where = SetBits(static_cast<std::int32_t>(first));
      for (Index h = in.h0; h < in.h1; ++h) {
        for (Index w = in.w0; w < in.w1; ++w) {
          const Index pixel = h * d.w + w;
          const Vec v = LoadSome(x + (image + pixel) * d.c + c, mask);
          const Truth wins = Either(Greater(v, best), IsNan(v));
          best = Choose(wins, v, best);
          where =
              Choose(wins, SetBits(static_cast<std::int32_t>(pixel)), where);
        }
      }
      StoreSome(y + out * d.c + c, best, mask);
      StoreSomeBits(at + out * d.c + c, where, mask);
    }
  });
}

// Every input pixel belongs to one window: each is written once.
inline void MaxPoolBackwardTiles(const ImageShape& d, const float* dy,
                                 const std::int32_t* at, float* dx) {
  ForEachWindow(d, [&](Index image, Index out, const Inside& in) {
    for (Index c = 0; c < d.c; c += kLanes) {
      const Mask mask = First(d.c - c);
      const Vec g = LoadSome(dy + out * d.c + c, mask);
      const Vec where = LoadSomeBits(at + out * d.c + c, mask);
      for (Index h = in.h0; h < in.h1; ++h) {
        for (Index w = in.w0; w < in.w1; ++w) {
          const Index pixel = h * d.w + w;
          const Truth won =
              SameBits(where, SetBits(static_cast<std::int32_t>(pixel)));
          StoreSome(dx + (image + pixel) * d.c + c, Choose(won, g, Zero()),
                    mask);
        }
      }
    }
  });
}

inline void MaxPoolBackward(const ImageShape& d, const float* dy,
                            const std::int32_t* argmax, float* dx) {
#if defined(__AVX512F__)
  if (Tiles(d) && IsHalvingOfFewChannels(d)) {
    HalveBackward(d, dy, argmax, dx);
    return;
  }
#endif
  if (Tiles(d)) {
    MaxPoolBackwardTiles(d, dy, argmax, dx);
    return;
  }
  const Index count = d.n * d.h * d.w * d.c;
  for (Index i = 0; i < count; i += kLanes) {
    StoreSome(dx + i, Zero(), First(count - i));
  }
  ForEachWindow(d, [&](Index image, Index out, const Inside&) {
    for (Index c = 0; c < d.c; ++c) {
      dx[(image + argmax[out * d.c + c]) * d.c + c] += dy[out * d.c + c];
    }
  });
}

// Returns the number of pixels of a window that its mean counts.
inline Index CountOf(const ImageShape& d, bool padded, Index p, Index q,
                     const Inside& in) {
  if (!padded) return (in.h1 - in.h0) * (in.w1 - in.w0);
  const Index h = p * d.stride_h - d.pad_h, w = q * d.stride_w - d.pad_w;
  return (Min(h + d.r, d.h + d.pad_h) - h) * (Min(w + d.s, d.w + d.pad_w) - w);
}

inline Inside AdaptiveInside(const ImageShape& d, Index p, Index q) {
  return {p * d.h / d.p, CeilDiv((p + 1) * d.h, d.p), q * d.w / d.q,
          CeilDiv((q + 1) * d.w, d.q)};
}

// Calls visit(image, output pixel, inside, 1 / pixels) for every window.
template <typename Visit>
TROUPE_INLINE void ForEachMean(const ImageShape& d, bool padded, Visit visit) {
  const float whole = 1.0f / static_cast<float>(d.r * d.s);
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        const Inside in = InsideOf(d, p, q);
        const Index count = CountOf(d, padded, p, q, in);
        visit(n * d.h * d.w, (n * d.p + p) * d.q + q, in,
              count == d.r * d.s ? whole : 1.0f / static_cast<float>(count));
      }
    }
  }
}

template <typename Visit>
TROUPE_INLINE void ForEachAdaptiveMean(const ImageShape& d, Visit visit) {
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        const Inside in = AdaptiveInside(d, p, q);
        visit(n * d.h * d.w, (n * d.p + p) * d.q + q, in,
              1.0f / static_cast<float>((in.h1 - in.h0) * (in.w1 - in.w0)));
      }
    }
  }
}

TROUPE_INLINE void AverageWindow(const ImageShape& d, const float* x,
                                 Index image, Index out, const Inside& in,
                                 float factor, float* y) {
  const Vec scale = Set(factor);
  for (Index c = 0; c < d.c; c += kLanes) {
    const Mask mask = First(d.c - c);
    Vec sum = Zero();
    for (Index h = in.h0; h < in.h1; ++h) {
      for (Index w = in.w0; w < in.w1; ++w) {
        const float* from = x + (image + h * d.w + w) * d.c + c;
        sum = Plus(sum, LoadSome(from, mask));
      }
    }
    StoreSome(y + out * d.c + c, Times(sum, scale), mask);
  }
}

TROUPE_INLINE void SpreadMean(const ImageShape& d, const float* dy, Index image,
                              Index out, const Inside& in, float factor,
                              float* dx) {
  const Vec scale = Set(factor);
  for (Index c = 0; c < d.c; c += kLanes) {
    const Mask mask = First(d.c - c);
    const Vec g = Times(LoadSome(dy + out * d.c + c, mask), scale);
    for (Index h = in.h0; h < in.h1; ++h) {
      for (Index w = in.w0; w < in.w1; ++w) {
        float* to = dx + (image + h * d.w + w) * d.c + c;
        StoreSome(to, Plus(LoadSome(to, mask), g), mask);
      }
    }
  }
}

inline void AvgPoolForward(const ImageShape& d, bool padded, const float* x,
                           float* y) {
  ForEachMean(d, padded,
              [&](Index image, Index out, const Inside& in, float factor) {
                AverageWindow(d, x, image, out, in, factor, y);
              });
}

inline void AvgPoolBackward(const ImageShape& d, bool padded, const float* dy,
                            float* dx) {
  ZeroFloats(d.n * d.h * d.w * d.c, dx);
  ForEachMean(d, padded,
              [&](Index image, Index out, const Inside& in, float factor) {
                SpreadMean(d, dy, image, out, in, factor, dx);
              });
}

inline void AdaptiveAvgPoolForward(const ImageShape& d, const float* x,
                                   float* y) {
  ForEachAdaptiveMean(
      d, [&](Index image, Index out, const Inside& in, float factor) {
        AverageWindow(d, x, image, out, in, factor, y);
      });
}

inline void AdaptiveAvgPoolBackward(const ImageShape& d, const float* dy,
                                    float* dx) {
  ZeroFloats(d.n * d.h * d.w * d.c, dx);
  ForEachAdaptiveMean(
      d, [&](Index image, Index out, const Inside& in, float factor) {
        SpreadMean(d, dy, image, out, in, factor, dx);
      });
}

constexpr void SetPool2dLoops(Loops& loops) {
  loops.max_pool_forward = MaxPoolForward;
  loops.max_pool_backward = MaxPoolBackward;
  loops.avg_pool_forward = AvgPoolForward;
  loops.avg_pool_backward = AvgPoolBackward;
  loops.adaptive_avg_pool_forward = AdaptiveAvgPoolForward;
  loops.adaptive_avg_pool_backward = AdaptiveAvgPoolBackward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_POOL2D_LOOPS_H_
