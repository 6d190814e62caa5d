// Borders around images of (N, H, W, C): rows of pixels are copied or added as
// runs of memory, and the columns of the border pixel by pixel.

#ifndef NN_KERNELS_CPU_PAD2D_LOOPS_H_
#define NN_KERNELS_CPU_PAD2D_LOOPS_H_

#include "nn/kernels/cpu/conv2d_loops.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

inline void PadRow(const PadShape& d, const float* x, float* y) {
  const auto border = [&](Index begin, Index end) {
    for (Index q = begin; q < end; ++q) {
      if (d.columns[q] < 0) {
        ZeroFloats(d.c, y + q * d.c);
      } else {
        CopyFloats(d.c, x + d.columns[q] * d.c, y + q * d.c);
      }
    }
  };
  border(0, d.left);
  CopyFloats(d.w * d.c, x, y + d.left * d.c);
  border(d.left + d.w, d.q);
}

inline void PadForward(const PadShape& d, const float* x, float* y) {
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      float* to = y + (n * d.p + p) * d.q * d.c;
      if (d.rows[p] < 0) {
        ZeroFloats(d.q * d.c, to);
      } else {
        PadRow(d, x + (n * d.h + d.rows[p]) * d.w * d.c, to);
      }
    }
  }
}

inline void AddFloats(Index n, const float* x, float* sums) {
  for (Index i = 0; i < n; i += kLanes) {
    const Mask mask = First(n - i);
    StoreSome(sums + i, Plus(LoadSome(sums + i, mask), LoadSome(x + i, mask)),
              mask);
  }
}

inline void PadBackward(const PadShape& d, const float* dy, float* dx) {
  ZeroFloats(d.n * d.h * d.w * d.c, dx);
  for (Index n = 0; n < d.n; ++n) {
    for (Index p = 0; p < d.p; ++p) {
      if (d.rows[p] < 0) continue;
      const float* from = dy + (n * d.p + p) * d.q * d.c;
      float* to = dx + (n * d.h + d.rows[p]) * d.w * d.c;
      const auto border = [&](Index begin, Index end) {
        for (Index q = begin; q < end; ++q) {
          if (d.columns[q] < 0) continue;
          AddFloats(d.c, from + q * d.c, to + d.columns[q] * d.c);
        }
      };
      border(0, d.left);
      AddFloats(d.w * d.c, from + d.left * d.c, to);
      border(d.left + d.w, d.q);
    }
  }
}

constexpr void SetPad2dLoops(Loops& loops) {
  loops.pad_forward = PadForward;
  loops.pad_backward = PadBackward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_PAD2D_LOOPS_H_
