// Kernels of rotary position embedding (Su et al. 2021, arXiv:2104.09864).
//
//   RotaryRule rule;
//   rule.base = 10000;
//   status = kernels.Rotary(rule, x, y);
//
// Letters: N samples, T positions, H heads, D elements of a head.

#ifndef NN_KERNELS_ROTARY_H_
#define NN_KERNELS_ROTARY_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

struct RotaryRule {
  double base = 10000;
  // Position of the first element of a sample.
  std::int64_t first = 0;
  // Number of elements that are rotated, even; the others of a head stay.
  std::int64_t width = 0;
  // Number of heads that are rotated, from the first; the others stay.
  std::int64_t heads = 0;
  // Pair i is elements 2 i and 2 i + 1; otherwise i and i + width / 2.
  bool interleaved = false;
  // Whether to rotate by the negative angles, as in backward.
  bool inverse = false;
};

struct RotaryKernels {
  // y[N, T, H, D]: pair i of position t of x, rotated by the angle
  // (first + t) * base^(-2 i / width). y may be x.
  Op<absl::Status(const RotaryRule& rule, In x, Out y)> Rotary{"Rotary"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    VisitOps<RotaryKernels>(visit, &RotaryKernels::Rotary);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_ROTARY_H_
