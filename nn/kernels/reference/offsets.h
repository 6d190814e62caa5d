// Offsets of a step of strided loops in both operands.
//
//   const Offsets at = OffsetsOf(loops, i);
//   y[i] = a[at.a] + b[at.b];

#ifndef NN_KERNELS_REFERENCE_OFFSETS_H_
#define NN_KERNELS_REFERENCE_OFFSETS_H_

#include <cstdint>

#include "nn/kernels/strided_loops.h"

namespace troupe::nn::reference {

struct Offsets {
  std::int64_t a, b;
};

// Returns the offsets of step i of all, in the loops' order.
inline Offsets OffsetsOf(const StridedLoops& loops, std::int64_t i) {
  Offsets at{loops.a_begin, loops.b_begin};
  for (int axis = loops.rank - 1; axis >= 0; --axis) {
    const std::int64_t index = i % loops.extent[axis];
    i /= loops.extent[axis];
    at.a += index * loops.a[axis];
    at.b += index * loops.b[axis];
  }
  return at;
}

}  // namespace troupe::nn::reference

#endif  // NN_KERNELS_REFERENCE_OFFSETS_H_
