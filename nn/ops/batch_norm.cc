#include "nn/ops/batch_norm.h"

#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Values that forward keeps for backward.
struct BatchNormCall {
  Tensor x, w, b;
  Tensor stats;
  // Whether the gradient flows through the statistics: they were the batch's.
  bool batch_stats = true;
  bool relu = false;
  bool has_residual = false;
  Tensor y;                      // with a residual, to mask behind the ReLU
  Collectives* peers = nullptr;  // ranks that share the statistics
};

absl::StatusOr<Tensor> EmptySums(Kernels& kernels, std::int64_t channels) {
  return Tensor::Create({2 * channels + 1}, DType::kF64, kernels.allocator());
}

class BatchNormNode final : public Node {
 public:
  explicit BatchNormNode(BatchNormCall call) : call_(std::move(call)) {}
  const char* name() const override { return "batch_norm"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    TROUPE_RETURN_IF_ERROR(PrepareGradient(kernels, dy));
    if (call_.has_residual && wanted[1]) dx[1] = dz_;
    if (!wanted[0]) return absl::OkStatus();
    Tensor sums;
    if (call_.batch_stats) {
      TROUPE_ASSIGN_OR_RETURN(sums, SumsOfAll(kernels));
    }
    TROUPE_ASSIGN_OR_RETURN(dx[0], Tensor::Create(call_.x.shape(), dy.dtype(),
                                                  kernels.allocator()));
    Tensor rows = AsMatrix(dx[0]);
    return kernels.BatchNormBackwardInput(AsMatrix(call_.x), call_.stats,
                                          call_.w, call_.b, AsMatrix(dz_),
                                          masks_again(), sums, rows);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    TROUPE_RETURN_IF_ERROR(PrepareGradient(kernels, dy));
    TROUPE_RETURN_IF_ERROR(ComputeSums(kernels));
    TROUPE_RETURN_IF_ERROR(EnsureWeightGrad(kernels, call_.w, grads[0]));
    return kernels.BatchNormBackwardWeight(sums_, accumulate, grads[0].grad,
                                           grads[1].grad);
  }

 private:
  // Whether the kernels compute the ReLU's mask from x. With a residual, the
  // mask is that of y, and the masked gradient is the residual's.
  bool masks_again() const { return call_.relu && !call_.has_residual; }

  absl::Status PrepareGradient(Kernels& kernels, const Tensor& dy) {
    if (dz_.defined()) return absl::OkStatus();
    if (!call_.relu || !call_.has_residual) {
      dz_ = dy;
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(
        dz_, Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return kernels.ReluBackward(call_.y, dy, dz_);
  }

  // Computes this rank's sums, in the first of the two passes. They read the
  // weights, which may change after the pass over inputs.
  absl::Status ComputeSums(Kernels& kernels) {
    if (sums_.defined()) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(sums_, EmptySums(kernels, call_.x.dim(-1)));
    return kernels.BatchNormBackwardSums(AsMatrix(call_.x), call_.stats,
                                         call_.w, call_.b, AsMatrix(dz_),
                                         masks_again(), sums_);
  }

  // Returns the sums over all ranks that shared the statistics.
  absl::StatusOr<Tensor> SumsOfAll(Kernels& kernels) {
    TROUPE_RETURN_IF_ERROR(ComputeSums(kernels));
    if (call_.peers == nullptr) return sums_;
    TROUPE_ASSIGN_OR_RETURN(Tensor all, EmptySums(kernels, call_.x.dim(-1)));
    TROUPE_RETURN_IF_ERROR(kernels.Copy(sums_, all));
    TROUPE_RETURN_IF_ERROR(call_.peers->AllReduce(ReduceOp::kSum, all));
    return all;
  }

  const BatchNormCall call_;
  Tensor dz_, sums_;
};

bool IsChannelVector(const Tensor& t, std::int64_t channels, DType dtype) {
  return t.defined() && t.shape() == Shape{channels} && t.dtype() == dtype;
}

// Returns the first error in the operands, or OK.
absl::Status CheckOperands(const Tensor& x, const Tensor& w, const Tensor& b,
                           const RunningStats& running,
                           const BatchNormOptions& options,
                           const Tensor& residual) {
  if (x.shape().rank() < 2 || x.dim(-1) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_norm takes x[N, ..., C], got ", Str(x)));
  }
  const std::int64_t C = x.dim(-1);
  const bool affine = w.defined() || b.defined();
  if (affine &&
      !(IsChannelVector(w, C, x.dtype()) && IsChannelVector(b, C, x.dtype()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_norm of ", Str(x), " takes a weight and a bias of ",
                     DTypeName(x.dtype()), "[", C, "], or neither, got ",
                     Str(w), " and ", Str(b)));
  }
  const Tensor &mean = running.mean, &batches = running.num_batches;
  const bool keeps =
      mean.defined() || running.var.defined() || batches.defined();
  if (keeps &&
      !(IsChannelVector(mean, C, mean.dtype()) &&
        IsChannelVector(running.var, C, mean.dtype()) && batches.defined() &&
        batches.dtype() == DType::kI64 && batches.numel() == 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_norm of ", Str(x), " takes running statistics of [",
                     C, "] and an i64 counter, got ", Str(mean), ", ",
                     Str(running.var), " and ", Str(batches)));
  }
  if (residual.defined() &&
      (residual.shape() != x.shape() || residual.dtype() != x.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_norm takes x and a residual of one shape and "
                     "dtype, got ",
                     Str(x), " and ", Str(residual)));
  }
  if (!(options.eps >= 0 && std::isfinite(options.eps)) ||
      !(options.momentum.value_or(0) >= 0 &&
        options.momentum.value_or(0) <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_norm takes eps >= 0 and a momentum in [0, 1], got ",
                     options.eps, " and ", options.momentum.value_or(0)));
  }
  return absl::OkStatus();
}

// Adds up the sums of this rank and of its peers.
absl::Status AddUp(const BatchNormCall& call, const Tensor& sums) {
  if (call.peers == nullptr) return absl::OkStatus();
  return call.peers->AllReduce(ReduceOp::kSum, sums);
}

// Sums x over this rank's rows and its peers', then computes the statistics.
absl::Status BatchStats(Context& ctx, const RunningStats& running,
                        const BatchNormOptions& options, BatchNormCall& call) {
  Kernels& kernels = ctx.kernels();
  const Tensor rows = AsMatrix(call.x);
  if (call.peers == nullptr && rows.dim(0) == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Expected more than 1 value per channel when training, "
                     "got input size ",
                     Str(call.x), "; make micro-batches larger"));
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor sums, EmptySums(kernels, rows.dim(1)));
  TROUPE_RETURN_IF_ERROR(kernels.BatchNormSums(rows, sums));
  TROUPE_RETURN_IF_ERROR(AddUp(call, sums));
  BatchNormRule rule = {options.eps, options.momentum.value_or(-1)};
  if (rows.dtype() == DType::kF64) {
    TROUPE_ASSIGN_OR_RETURN(Tensor squares, EmptySums(kernels, rows.dim(1)));
    TROUPE_RETURN_IF_ERROR(kernels.BatchNormSquares(rows, sums, squares));
    TROUPE_RETURN_IF_ERROR(AddUp(call, squares));
    rule.centered = true;
    sums = std::move(squares);
  }
  RunningStats moving = ctx.updates_buffers() ? running : RunningStats();
  return kernels.BatchNormStats(sums, rule, call.stats, moving.mean, moving.var,
                                moving.num_batches);
}

absl::Status Forward(Context& ctx, const RunningStats& running,
                     const BatchNormOptions& options, const Tensor& residual,
                     BatchNormCall& call, Tensor& y) {
  Kernels& kernels = ctx.kernels();
  TROUPE_ASSIGN_OR_RETURN(
      call.stats,
      Tensor::Create({2, call.x.dim(-1)}, DType::kF64, kernels.allocator()));
  if (call.batch_stats) {
    TROUPE_RETURN_IF_ERROR(BatchStats(ctx, running, options, call));
  } else {
    TROUPE_RETURN_IF_ERROR(kernels.BatchNormRunningStats(
        running.mean, running.var, options.eps, call.stats));
  }
  Tensor rows = AsMatrix(y);
  return kernels.BatchNormForward(
      AsMatrix(call.x), call.stats, call.w, call.b,
      residual.defined() ? AsMatrix(residual) : residual, call.relu, rows);
}

}  // namespace

Tensor BatchNorm(Context& ctx, const Tensor& x, const Tensor& w,
                 const Tensor& b, const RunningStats& running,
                 const BatchNormOptions& options, const Tensor& residual) {
  if (!ctx.ok()) return Tensor();
  const absl::Status fits = CheckOperands(x, w, b, running, options, residual);
  if (!fits.ok()) return ctx.Fail(fits);
  BatchNormCall call;
  if (!options.sync_axis.empty()) {
    call.peers = ctx.collectives(options.sync_axis);
  }
  Tensor y = ctx.Empty("batch_norm", x.shape(), x.dtype());
  ctx.Note("batch_norm", y, 6.0 * x.numel());
  if (!ctx.computes()) return y;
  call.x = x, call.w = w, call.b = b;
  call.batch_stats = ctx.training() || !running.mean.defined();
  call.relu = options.relu;
  call.has_residual = residual.defined();
  const absl::Status status = Forward(ctx, running, options, residual, call, y);
  absl::InlinedVector<Tensor, 4> inputs = {x};
  if (residual.defined()) inputs.push_back(residual);
  if (w.defined()) inputs.insert(inputs.end(), {w, b});
  const int num_weights = w.defined() ? 2 : 0;
  return Finish(ctx, status, inputs, num_weights, y, [&] {
    if (call.relu && call.has_residual) call.y = y;
    return std::make_unique<BatchNormNode>(std::move(call));
  });
}

}  // namespace troupe::nn::ops
