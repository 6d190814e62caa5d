// Norm of the gradients of a whole model, and clipping by it, for loops of a
// program's own (torch.nn.utils.clip_grad_norm_). A job's optimizers clip by
// themselves: OptimizerOptions::clip_grad_norm.
//
//   loss.Backward();
//   TROUPE_ASSIGN_OR_RETURN(const double norm,
//                           ClipGradNorm(kernels, {&arena}, /*max_norm=*/1));
//   // then the update, without clip_grad_norm
//
// The norm is that of the gradients as they are, which after Var::Backward()
// are those of the mean; parameters that the loss did not use count as 0
// (ParameterArena::ZeroUnwritten). It covers the parameters that are trained,
// of these arenas alone: ranks that hold other parts of a model add up squares.
//
// Clipping multiplies all gradients in place by min(1, max_norm / (norm +
// 1e-6)), as PyTorch does. If the norm is not a number, neither are they.
//
// Sums are in f64. Their order depends on buckets and kernels, so that two
// bucketings differ in the last bits of the norm. Both calls wait for the
// device. Cost: one pass over the gradients; another one if they are clipped.

#ifndef NN_OPTIM_CLIP_GRAD_NORM_H_
#define NN_OPTIM_CLIP_GRAD_NORM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

// Returns the norm of all gradients. Leaves out copied buckets
// (ParameterArena::IsCopied).
//   kResourceExhausted: no memory is left.
absl::StatusOr<double> GradNorm(Kernels& kernels,
                                absl::Span<ParameterArena* const> arenas);

// Clips the gradients, and returns their norm before.
//   kInvalidArgument: max_norm is negative or not a number.
absl::StatusOr<double> ClipGradNorm(Kernels& kernels,
                                    absl::Span<ParameterArena* const> arenas,
                                    double max_norm);

}  // namespace troupe::nn

#endif  // NN_OPTIM_CLIP_GRAD_NORM_H_
