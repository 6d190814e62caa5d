// Maps the rows of a padded image to those of the image; the same for columns.
//
//   const std::int64_t h = PadSource(PadMode::kReflect, p, top, H);
//
// Plain arithmetic, the same on every device.

#ifndef NN_KERNELS_PAD_SOURCE_H_
#define NN_KERNELS_PAD_SOURCE_H_

#include "nn/kernels/pad2d.h"

#if defined(__CUDACC__)
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

namespace troupe::nn {

// Returns the input row of `extent` that output row `out` copies, with `before`
// rows in front of the image; -1: zeros.
template <typename Index>
TROUPE_HOST_DEVICE constexpr Index PadSource(PadMode mode, Index out,
                                             Index before, Index extent) {
  const Index at = out - before;
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case PadMode::kReflect:
      return at < 0 ? -at : 2 * (extent - 1) - at;
    case PadMode::kReplicate:
      return at < 0 ? 0 : extent - 1;
    case PadMode::kCircular:
      return at < 0 ? at + extent : at - extent;
    default:
      return -1;
  }
}

}  // namespace troupe::nn

#undef TROUPE_HOST_DEVICE

#endif  // NN_KERNELS_PAD_SOURCE_H_
