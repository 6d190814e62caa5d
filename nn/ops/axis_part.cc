#include "nn/ops/axis_part.h"

namespace troupe::nn::ops {

StridedLoops FromPart(const Shape& whole, int axis, std::int64_t begin,
                      const Shape& part) {
  const Strides strides = StridesOf(whole);
  StridedLoops loops = LoopsOver(part, strides, StridesOf(part));
  loops.a_begin = begin * strides[axis];
  return loops;
}

StridedLoops ToPart(const Shape& whole, int axis, std::int64_t begin,
                    const Shape& part) {
  const Strides strides = StridesOf(whole);
  StridedLoops loops = LoopsOver(part, StridesOf(part), strides);
  loops.b_begin = begin * strides[axis];
  return loops;
}

bool IsContiguousPart(const Shape& whole, int axis) {
  for (int before = 0; before < axis; ++before) {
    if (whole[before] != 1) return false;
  }
  return true;
}

Tensor ViewOfPart(const Tensor& whole, int axis, std::int64_t begin,
                  const Shape& part) {
  return whole.FlatView(begin * StridesOf(whole.shape())[axis], part);
}

}  // namespace troupe::nn::ops
