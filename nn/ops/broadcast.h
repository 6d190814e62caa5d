// Shared by fronts whose operands are broadcast to one shape.
//
//   TROUPE_ASSIGN_OR_RETURN(Tensor da, SumTo(kernels, dy, a.shape()));
//   TROUPE_ASSIGN_OR_RETURN(Tensor dx, ExpandTo(kernels, dy, x.shape()));

#ifndef NN_OPS_BROADCAST_H_
#define NN_OPS_BROADCAST_H_

#include "absl/status/statusor.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops {

// Returns the sums of `t` over all axes along which a tensor of `shape` was
// repeated to have the shape of t: the gradient of that tensor. Returns `t`
// itself if no axis was repeated.
absl::StatusOr<Tensor> SumTo(Kernels& kernels, const Tensor& t,
                             const Shape& shape);

// Returns `t` repeated to `shape`, as NumPy broadcasts it; `t` itself if it has
// that shape.
absl::StatusOr<Tensor> ExpandTo(Kernels& kernels, const Tensor& t,
                                const Shape& shape);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_BROADCAST_H_
