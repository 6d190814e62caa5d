// Nested loops over two operands in memory: how far each of them goes from one
// index to the next along every axis.
//
//   // y[c, r] = x[r, c]: the loops go through y in its order.
//   const Shape y = {C, R};
//   StridedLoops loops = LoopsOver(y, /*a=*/{1, C}, /*b=*/StridesOf(y));
//   status = kernels.CopyStrided(loops, x, out);
//
//   const Shape shape = *BroadcastShape(a.shape(), b.shape());
//   StridedLoops both = BroadcastLoops(shape, a.shape(), b.shape());
//
// Axes of extent 1 are gone, and neighbours that both operands walk through as
// through one axis are one, so that a copy of a whole tensor has one axis.
// Plain data; cheap to copy.

#ifndef NN_KERNELS_STRIDED_LOOPS_H_
#define NN_KERNELS_STRIDED_LOOPS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "nn/tensor/shape.h"

namespace troupe::nn {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

struct StridedLoops {
  int rank = 0;            // 0: one element
  Strides extent = {};     // axis 0 is the outermost
  Strides a = {}, b = {};  // elements from one index to the next
  // The first element of each operand.
  std::int64_t a_begin = 0, b_begin = 0;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= extent[axis];
    return n;
  }
};

// Strides of a contiguous tensor.
Strides StridesOf(const Shape& shape);

// Loops over all indices of `shape`, the last axis innermost.
StridedLoops LoopsOver(const Shape& shape, const Strides& a, const Strides& b);

// The shape that a and b are broadcast to by NumPy's rules: axes are aligned at
// the end, and an axis of extent 1 is repeated. Nothing where they do not fit.
std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b);

// Loops over a BroadcastShape(), with stride 0 where an operand is repeated.
StridedLoops BroadcastLoops(const Shape& shape, const Shape& a, const Shape& b);

// The same over all axes of `shape` but the last two, which are matrices: loops
// from one matrix of a and b to the next. Each has rank 2 at least.
StridedLoops BroadcastMatrices(const Shape& shape, const Shape& a,
                               const Shape& b);

}  // namespace troupe::nn

#endif  // NN_KERNELS_STRIDED_LOOPS_H_
