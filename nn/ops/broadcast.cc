#include "nn/ops/broadcast.h"

#include "base/check.h"

namespace troupe::nn::ops {
namespace {

// Returns `shape` with axes of extent 1 in front, up to `rank`.
Shape WithRank(const Shape& shape, int rank) {
  Shape padded(std::vector<std::int64_t>(rank, 1));
  for (int axis = -1; axis >= -shape.rank(); --axis) {
    padded.set(rank + axis, shape[axis]);
  }
  return padded;
}

}  // namespace

absl::StatusOr<Tensor> SumTo(Kernels& kernels, const Tensor& t,
                             const Shape& shape) {
  if (t.shape() == shape) return t;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor sums, Tensor::Create(WithRank(shape, t.shape().rank()), t.dtype(),
                                  kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.SumAxes(t, /*divisor=*/1, sums));
  return sums.View(shape);
}

absl::StatusOr<Tensor> ExpandTo(Kernels& kernels, const Tensor& t,
                                const Shape& shape) {
  if (t.shape() == shape) return t;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor expanded, Tensor::Create(shape, t.dtype(), kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
      BroadcastLoops(shape, t.shape(), shape), t, expanded));
  return expanded;
}

}  // namespace troupe::nn::ops
