// Copies between a tensor and a part of one along an axis.
//
//   TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
//       FromPart(x.shape(), axis, begin, y.shape()), x, y));   // y is the part

#ifndef NN_OPS_AXIS_PART_H_
#define NN_OPS_AXIS_PART_H_

#include <cstdint>

#include "nn/kernels/strided_loops.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops {

// Loops over `part`, whose extents are those of `whole` but along `axis`, where
// it is the indices of `whole` from `begin` on: from whole to part, and back.
StridedLoops FromPart(const Shape& whole, int axis, std::int64_t begin,
                      const Shape& part);
StridedLoops ToPart(const Shape& whole, int axis, std::int64_t begin,
                    const Shape& part);

// Whether such a part lies together in memory, from element
// begin * StridesOf(whole)[axis] on.
bool IsContiguousPart(const Shape& whole, int axis);

// That part as a view. A view of a tracked tensor is tracked, too: ops detach
// `whole`.
Tensor ViewOfPart(const Tensor& whole, int axis, std::int64_t begin,
                  const Shape& part);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_AXIS_PART_H_
