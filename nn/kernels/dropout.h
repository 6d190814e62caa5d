// Kernels that drop elements by a random draw.
//
//   status = kernels.Dropout(mask, x, y);

#ifndef NN_KERNELS_DROPOUT_H_
#define NN_KERNELS_DROPOUT_H_

#include <cstdint>

#include "nn/kernels/op.h"
#include "nn/random/sample_draws.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Elements to drop: element e of sample n, if draw DrawOf(e) of draws.At(n) is
// below drop_below / 2^32. The other elements are multiplied by `scale`.
struct DropoutMask {
  SampleDraws draws;
  std::uint32_t drop_below = 0;
  double scale = 1;
  // i32[2] on the device: step and position of `draws.first`, read when the
  // kernel runs, so that a recorded step gets new draws (device_graph.h).
  // Undefined: those in `draws`.
  Tensor place = {};
  // Place of these elements in a sample that ranks share (nn/modules/linear.h):
  // the first one is element `first` of the whole, and each run of `row`
  // elements begins `stride` elements after the one before. A row of 0: all
  // elements are one run.
  std::int64_t first = 0, row = 0, stride = 0;

  // Returns the draw of element e.
  std::int64_t DrawOf(std::int64_t e) const {
    return first + (row == 0 ? e : e / row * stride + e % row);
  }
};

// Returns the draws of `mask`; the host must have access to `place`.
inline SampleDraws DrawsOf(const DropoutMask& mask) {
  SampleDraws draws = mask.draws;
  if (!mask.place.defined()) return draws;
  draws.first.step =
      static_cast<std::uint32_t>(mask.place.span<std::int32_t>()[0]);
  draws.first.position =
      static_cast<std::uint32_t>(mask.place.span<std::int32_t>()[1]);
  return draws;
}

struct DropoutKernels {
  // y = mask(x): forward and backward. x [N, ...]; y may be x. The mask's row
  // divides the elements of a sample.
  Op<absl::Status(const DropoutMask& mask, In x, Out y)> Dropout{"Dropout"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    VisitOps<DropoutKernels>(visit, &DropoutKernels::Dropout);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_DROPOUT_H_
