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

Shape AroundAxis(const Shape& x, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x[i];
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x[i];
  return {outer, x[axis], inner};
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
