// A sliding window over signals (N, L, C).
//
//   Window1d window{/*kernel=*/3, /*stride=*/2};
//   window.AsRow().OutW(9);                          // 4

#ifndef NN_KERNELS_WINDOW1D_H_
#define NN_KERNELS_WINDOW1D_H_

#include <cstdint>

#include "nn/kernels/window2d.h"

namespace troupe::nn {

struct Window1d {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t dilation = 1;

  // The same over images of one row: signals are computed as images.
  Window2d AsRow() const { return {1, kernel, 1, stride, 0, pad, 1, dilation}; }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_WINDOW1D_H_
