// Shared by fronts that work along one axis: copies between a tensor and a part
// of it, and its shape around the axis.
//
//   TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
//       FromPart(x.shape(), axis, begin, y.shape()), x, y));   // y is the part

#ifndef NN_OPS_AXIS_PART_H_
#define NN_OPS_AXIS_PART_H_

#include <cstdint>

#include "nn/kernels/strided_loops.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops {

// Loops that copy from `whole` to `part`, and back. The extents of `part` are
// those of `whole` except along `axis`, where it has the indices of `whole`
// from `begin` on.
StridedLoops FromPart(const Shape& whole, int axis, std::int64_t begin,
                      const Shape& part);
StridedLoops ToPart(const Shape& whole, int axis, std::int64_t begin,
                    const Shape& part);

// Returns the shape of x as [O, K, I], where K are the elements along the axis:
// that of the kernels of one axis (nn/kernels/indexing.h, reduction.h).
Shape AroundAxis(const Shape& x, int axis);

// Whether parts along `axis` are contiguous in memory; a part then starts at
// element begin * StridesOf(whole)[axis].
bool IsContiguousPart(const Shape& whole, int axis);

// Returns a contiguous part as a view. A view of a tracked tensor is tracked,
// too, so ops detach `whole` first.
Tensor ViewOfPart(const Tensor& whole, int axis, std::int64_t begin,
                  const Shape& part);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_AXIS_PART_H_
