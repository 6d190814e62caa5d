// Kernels that drop elements by a random draw.
//
//   status = kernels.Dropout(mask, x, y);

#ifndef NN_KERNELS_DROPOUT_H_
#define NN_KERNELS_DROPOUT_H_

#include <cstdint>

#include "nn/kernels/op.h"
#include "nn/random/sample_draws.h"

namespace troupe::nn {

// What dropout drops: element e of sample n, where draw e of draws.At(n) is
// below drop_below / 2^32. What it keeps is multiplied by `scale`.
struct DropoutMask {
  SampleDraws draws;
  std::uint32_t drop_below = 0;
  double scale = 1;
};

struct DropoutKernels {
  // y = mask(x): forward and backward. x [N, ...]; y may be x.
  Op<absl::Status(const DropoutMask& mask, In x, Out y)> Dropout{"Dropout"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    VisitOps<DropoutKernels>(visit, &DropoutKernels::Dropout);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_DROPOUT_H_
