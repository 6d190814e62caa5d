#include "nn/optim/clip_grad_norm.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::nn {
namespace {

absl::Status AddSquaresOf(Kernels& kernels, ParameterArena& arena,
                          Tensor& sum) {
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    if (arena.IsCopied(bucket)) continue;
    TROUPE_RETURN_IF_ERROR(arena.ZeroUnwritten(bucket));
    TROUPE_RETURN_IF_ERROR(kernels.AddSquares(arena.BucketGrads(bucket), sum));
  }
  return absl::OkStatus();
}

// Returns the scalar in host memory, with the device's work done.
absl::StatusOr<double> ReadScalar(Kernels& kernels, const Tensor& scalar) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor host,
                          CopyToHost(kernels, Queue::kCompute, scalar));
  TROUPE_RETURN_IF_ERROR(
      Synchronize(kernels, Record(kernels, Queue::kCompute)));
  return host.data<double>()[0];
}

absl::Status ScaleGrads(Kernels& kernels, ParameterArena& arena,
                        const Tensor& factor) {
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    // Copied buckets have not been through this yet.
    TROUPE_RETURN_IF_ERROR(arena.ZeroUnwritten(bucket));
    Tensor grads = arena.BucketGrads(bucket);
    TROUPE_RETURN_IF_ERROR(kernels.Scale(grads, factor, grads));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> GradNorm(Kernels& kernels,
                                absl::Span<ParameterArena* const> arenas) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor sum, Tensor::Create({1}, DType::kF64, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Fill(0, sum));
  for (ParameterArena* arena : arenas) {
    TROUPE_RETURN_IF_ERROR(AddSquaresOf(kernels, *arena, sum));
  }
  TROUPE_ASSIGN_OR_RETURN(const double squares, ReadScalar(kernels, sum));
  return std::sqrt(squares);
}

absl::StatusOr<double> ClipGradNorm(Kernels& kernels,
                                    absl::Span<ParameterArena* const> arenas,
                                    double max_norm) {
  if (!(max_norm >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_norm (", max_norm, ") must be a number of at least 0"));
  }
  TROUPE_ASSIGN_OR_RETURN(const double norm, GradNorm(kernels, arenas));
  // The formula of a job's optimizers.
  StepScalars scalars;
  scalars.summed = 1;
  scalars.square_sum = norm * norm;
  scalars.SetClipFactor(max_norm);
  if (scalars.grad_factor == 1) return norm;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor factor, Tensor::Create({1}, DType::kF64, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Fill(scalars.grad_factor, factor));
  for (ParameterArena* arena : arenas) {
    TROUPE_RETURN_IF_ERROR(ScaleGrads(kernels, *arena, factor));
  }
  return norm;
}

}  // namespace troupe::nn
