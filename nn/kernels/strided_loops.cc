#include "nn/kernels/strided_loops.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/types/span.h"

namespace troupe::nn {
namespace {

// Whether the next inner axis continues the last of `loops` in both operands.
bool Continues(const StridedLoops& loops, std::int64_t extent, std::int64_t a,
               std::int64_t b) {
  const int last = loops.rank - 1;
  return last >= 0 && loops.a[last] == a * extent &&
         loops.b[last] == b * extent;
}

}  // namespace

Strides StridesOf(const Shape& shape) {
  Strides strides = {};
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Strides BroadcastStrides(const Shape& shape, const Shape& t) {
  const Strides own = StridesOf(t);
  Strides strides = {};
  const int missing = shape.rank() - t.rank();
  for (int axis = missing; axis < shape.rank(); ++axis) {
    const bool repeated = t[axis - missing] == 1;
    strides[axis] = repeated ? 0 : own[axis - missing];
  }
  return strides;
}

StridedLoops LoopsOver(const Shape& shape, const Strides& a, const Strides& b) {
  StridedLoops loops;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t extent = shape[axis];
    if (extent == 1) continue;
    if (!Continues(loops, extent, a[axis], b[axis])) {
      loops.extent[loops.rank++] = 1;
    }
    const int last = loops.rank - 1;
    loops.extent[last] *= extent;
    loops.a[last] = a[axis];
    loops.b[last] = b[axis];
  }
  return loops;
}

std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int rank = longer.rank();
  std::array<std::int64_t, Shape::kMaxRank> extents = {};
  std::copy_n(longer.dims().begin(), rank, extents.begin());
  for (int axis = -1; axis >= -shorter.rank(); --axis) {
    const std::int64_t mine = longer[axis], other = shorter[axis];
    if (mine == other || other == 1) continue;
    if (mine != 1) return std::nullopt;
    extents[rank + axis] = other;
  }
  const auto dims = absl::MakeConstSpan(extents).first(rank);
  if (!Shape::Fits(dims)) return std::nullopt;
  return Shape(dims);
}

StridedLoops BroadcastLoops(const Shape& shape, const Shape& a,
                            const Shape& b) {
  return LoopsOver(shape, BroadcastStrides(shape, a),
                   BroadcastStrides(shape, b));
}

StridedLoops BroadcastMatrices(const Shape& shape, const Shape& a,
                               const Shape& b) {
  const Shape batch(shape.dims().first(shape.rank() - 2));
  return LoopsOver(batch, BroadcastStrides(shape, a),
                   BroadcastStrides(shape, b));
}

}  // namespace troupe::nn
