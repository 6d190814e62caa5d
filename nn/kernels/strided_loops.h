// Nested loops over two operands in memory: the stride of each along every
// axis.
//
//   // y[c, r] = x[r, c]: the loops go through y in its order.
//   const Shape y = {C, R};
//   StridedLoops loops = LoopsOver(y, /*a=*/{1, C}, /*b=*/StridesOf(y));
//   status = kernels.CopyStrided(loops, x, out);
//
//   const Shape shape = *BroadcastShape(a.shape(), b.shape());
//   StridedLoops both = BroadcastLoops(shape, a.shape(), b.shape());
//
// Axes of extent 1 are dropped, and neighbouring axes that are contiguous in
// both operands are merged, so that a copy of a whole tensor has one axis.
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
  // Index of the first element of each operand.
  std::int64_t a_begin = 0, b_begin = 0;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= extent[axis];
    return n;
  }
};

// Returns the strides of a contiguous tensor.
Strides StridesOf(const Shape& shape);

// Returns loops over all indices of `shape`, the last axis innermost.
StridedLoops LoopsOver(const Shape& shape, const Strides& a, const Strides& b);

// Returns the shape that a and b are broadcast to by NumPy's rules: axes are
// aligned at the end, and an axis of extent 1 is repeated. None if they do not
// fit.
std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b);

// Returns the strides of `t` along the axes of a BroadcastShape(), 0 where it
// is repeated.
Strides BroadcastStrides(const Shape& shape, const Shape& t);

// Returns loops over a BroadcastShape(), with stride 0 where an operand is
// repeated.
StridedLoops BroadcastLoops(const Shape& shape, const Shape& a, const Shape& b);

// The same over all axes of `shape` except the last two, which are matrices:
// loops from one matrix of a and b to the next. Each has at least rank 2.
StridedLoops BroadcastMatrices(const Shape& shape, const Shape& a,
                               const Shape& b);

}  // namespace troupe::nn

#endif  // NN_KERNELS_STRIDED_LOOPS_H_
