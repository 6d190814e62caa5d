// Loops for any window, stride and padding, one element at a time: what the
// vector loops fall back to. Included into each instruction set's file.

#ifndef NN_KERNELS_CPU_GENERAL_LOOPS_H_
#define NN_KERNELS_CPU_GENERAL_LOOPS_H_

#include <cstdint>

#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

using Index = std::int64_t;

// Calls visit(image, p, q, r, s, h, w) for every filter tap of every output
// pixel that lies inside the input.
template <typename Visit>
void ForEachTap(const ImageShape& d, Visit visit) {
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      for (Index q = 0; q < d.q; ++q) {
        const Index out = (n * d.p + p) * d.q + q;
        for (Index r = 0; r < d.r; ++r) {
          const Index h = p * d.stride_h - d.pad_h + r;
          if (h < 0 || h >= d.h) continue;
          for (Index s = 0; s < d.s; ++s) {
            const Index w = q * d.stride_w - d.pad_w + s;
            if (w < 0 || w >= d.w) continue;
            visit(out, (n * d.h + h) * d.w + w, r, s, h * d.w + w);
          }
        }
      }
    }
  }
}

inline void GeneralConvForward(const ImageShape& d, const float* x,
                               const float* w, const float* b, float* y,
                               float* /*scratch*/) {
  for (Index i = 0; i < d.n * d.p * d.q; ++i) {
    for (Index o = 0; o < d.o; ++o) y[i * d.o + o] = b ? b[o] : 0.0f;
  }
  ForEachTap(d, [&](Index out, Index in, Index r, Index s, Index) {
    for (Index o = 0; o < d.o; ++o) {
      float sum = y[out * d.o + o];
      for (Index c = 0; c < d.c; ++c) {
        sum += x[in * d.c + c] * w[((o * d.c + c) * d.r + r) * d.s + s];
      }
      y[out * d.o + o] = sum;
    }
  });
}

inline void GeneralConvBackwardInput(const ImageShape& d, const float* dy,
                                     const float* w, float* dx,
                                     float* /*scratch*/) {
  for (Index i = 0; i < d.n * d.h * d.w * d.c; ++i) dx[i] = 0.0f;
  ForEachTap(d, [&](Index out, Index in, Index r, Index s, Index) {
    for (Index c = 0; c < d.c; ++c) {
      float sum = dx[in * d.c + c];
      for (Index o = 0; o < d.o; ++o) {
        sum += dy[out * d.o + o] * w[((o * d.c + c) * d.r + r) * d.s + s];
      }
      dx[in * d.c + c] = sum;
    }
  });
}

inline void GeneralConvBackwardWeight(const ImageShape& d, const float* x,
                                      const float* dy, bool accumulate,
                                      float* dw, float* /*scratch*/) {
  if (!accumulate) {
    for (Index i = 0; i < d.o * d.c * d.r * d.s; ++i) dw[i] = 0.0f;
  }
  ForEachTap(d, [&](Index out, Index in, Index r, Index s, Index) {
    for (Index o = 0; o < d.o; ++o) {
      for (Index c = 0; c < d.c; ++c) {
        dw[((o * d.c + c) * d.r + r) * d.s + s] +=
            x[in * d.c + c] * dy[out * d.o + o];
      }
    }
  });
}

inline void GeneralMaxPoolForward(const ImageShape& d, const float* x, float* y,
                                  std::int32_t* argmax) {
  for (Index i = 0; i < d.n * d.p * d.q * d.c; ++i) argmax[i] = -1;
  ForEachTap(d, [&](Index out, Index in, Index, Index, Index pixel) {
    for (Index c = 0; c < d.c; ++c) {
      const float value = x[in * d.c + c];
      float& best = y[out * d.c + c];
      std::int32_t& at = argmax[out * d.c + c];
      if (at < 0 || value > best || value != value) {
        // The first NaN stays.
        if (at >= 0 && best != best) continue;
        best = value;
        at = static_cast<std::int32_t>(pixel);
      }
    }
  });
}

inline void GeneralMaxPoolBackward(const ImageShape& d, const float* dy,
                                   const std::int32_t* argmax, float* dx) {
  for (Index i = 0; i < d.n * d.h * d.w * d.c; ++i) dx[i] = 0.0f;
  for (Index n = 0; n < d.n; ++n) {
    for (Index pixel = 0; pixel < d.p * d.q; ++pixel) {
      for (Index c = 0; c < d.c; ++c) {
        const Index out = (n * d.p * d.q + pixel) * d.c + c;
        dx[(n * d.h * d.w + argmax[out]) * d.c + c] += dy[out];
      }
    }
  }
}

inline void GeneralAvgPoolForward(const ImageShape& d, const float* x,
                                  float* y) {
  const float scale = 1.0f / static_cast<float>(d.r * d.s);
  for (Index i = 0; i < d.n * d.p * d.q * d.c; ++i) y[i] = 0.0f;
  ForEachTap(d, [&](Index out, Index in, Index, Index, Index) {
    for (Index c = 0; c < d.c; ++c) y[out * d.c + c] += x[in * d.c + c];
  });
  for (Index i = 0; i < d.n * d.p * d.q * d.c; ++i) y[i] *= scale;
}

inline void GeneralAvgPoolBackward(const ImageShape& d, const float* dy,
                                   float* dx) {
  const float scale = 1.0f / static_cast<float>(d.r * d.s);
  for (Index i = 0; i < d.n * d.h * d.w * d.c; ++i) dx[i] = 0.0f;
  ForEachTap(d, [&](Index out, Index in, Index, Index, Index) {
    for (Index c = 0; c < d.c; ++c) {
      dx[in * d.c + c] += dy[out * d.c + c] * scale;
    }
  });
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_GENERAL_LOOPS_H_
