// Iterates over the outer axes of strided loops; a kernel handles the inner
// axes itself.
//
//   ForEachOuter(loops, /*inner=*/1, [&](std::int64_t a, std::int64_t b) {
//     CopyRow(x + a, y + b);                   // the last axis
//   });

#ifndef NN_KERNELS_CPU_OUTER_LOOPS_H_
#define NN_KERNELS_CPU_OUTER_LOOPS_H_

#include <algorithm>
#include <cstdint>

#include "nn/kernels/strided_loops.h"

namespace troupe::nn::cpu {

// Calls step(a, b) with the offsets of both operands for all indices of all
// except the last `inner` axes; of all axes if `inner` is 0. No calls if an
// axis has extent 0.
template <typename Step>
void ForEachOuter(const StridedLoops& loops, int inner, Step step) {
  if (loops.numel() == 0) return;
  const int outer = std::max(loops.rank - inner, 0);
  Strides index = {};
  std::int64_t a = loops.a_begin, b = loops.b_begin;
  while (true) {
    step(a, b);
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      a += loops.a[axis];
      b += loops.b[axis];
      if (++index[axis] < loops.extent[axis]) break;
      a -= loops.extent[axis] * loops.a[axis];
      b -= loops.extent[axis] * loops.b[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_OUTER_LOOPS_H_
