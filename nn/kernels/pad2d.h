// Kernels that add a border to images: x[N, H, W, C] to y[N, P, Q, C].
//
//   Padding2d padding{/*top=*/1, /*bottom=*/1, /*left=*/2, /*right=*/2};
//   padding.mode = PadMode::kReflect;
//   status = kernels.Pad2dForward(padding, x, y);    // P = H + 2, Q = W + 4
//
// A row or column of the border is a copy of one of the image, or zeros:
//
//     kZeros       0 0 | a b c d | 0 0
//     kReflect     c b | a b c d | c b     less than the extent
//     kReplicate   a a | a b c d | d d
//     kCircular    c d | a b c d | a b     at most the extent
//
// So a pixel's gradient is the sum of those of its copies, in row order.

#ifndef NN_KERNELS_PAD2D_H_
#define NN_KERNELS_PAD2D_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

enum class PadMode : std::uint8_t { kZeros, kReflect, kReplicate, kCircular };

// Number of pixels on each side, none of them negative.
struct Padding2d {
  std::int64_t top = 0, bottom = 0;
  std::int64_t left = 0, right = 0;
  PadMode mode = PadMode::kZeros;
};

// The same for signals, which are images of one row.
struct Padding1d {
  std::int64_t before = 0, after = 0;
  PadMode mode = PadMode::kZeros;
};

struct Pad2dKernels {
  Op<absl::Status(const Padding2d& padding, In x, Out y)> Pad2dForward{
      "Pad2dForward"};
  Op<absl::Status(const Padding2d& padding, In dy, Out dx)> Pad2dBackward{
      "Pad2dBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = Pad2dKernels;
    VisitOps<K>(visit, &K::Pad2dForward, &K::Pad2dBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_PAD2D_H_
