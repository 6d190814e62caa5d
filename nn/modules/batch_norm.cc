#include "nn/modules/batch_norm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/ops/batch_norm.h"

namespace troupe::nn {

BatchNorm::BatchNorm(std::int64_t channels, const Options& options,
                     int least_rank, int most_rank, const char* axes)
    : options_(options),
      channels_(channels),
      least_rank_(least_rank),
      most_rank_(most_rank),
      axes_(axes) {
  if (options.affine) {
    weight_ =
        &Declare("weight", {channels}, Initializer::Constant(1), options.dtype);
    bias_ =
        &Declare("bias", {channels}, Initializer::Constant(0), options.dtype);
  }
  if (!options.track_running_stats) return;
  const DType kept = options.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  running_mean_ = &DeclareBuffer("running_mean", {channels}, 0, kept);
  running_var_ = &DeclareBuffer("running_var", {channels}, 1, kept);
  num_batches_tracked_ =
      &DeclareBuffer("num_batches_tracked", {}, 0, DType::kI64);
}

void BatchNorm::set_sync_axis(std::string axis) {
  sync_axis_ = std::move(axis);
  for (Buffer* buffer : {running_mean_, running_var_, num_batches_tracked_}) {
    if (buffer != nullptr) buffer->same_along = sync_axis_;
  }
}

Tensor BatchNorm::Forward(Context& ctx, const Tensor& x) {
  return Run(ctx, x, Tensor());
}

TensorList BatchNorm::ForwardMany(Context& ctx, absl::Span<const Tensor> xs) {
  if (xs.size() == 1 || xs.size() == 2) {
    return {Run(ctx, xs[0], xs.size() == 2 ? xs[1] : Tensor())};
  }
  ctx.Fail(absl::InvalidArgumentError(absl::StrCat(
      "batch norm takes x, or x and a residual, not ", xs.size(), " tensors")));
  return {};
}

Tensor BatchNorm::Run(Context& ctx, const Tensor& x, const Tensor& residual) {
  const int rank = x.shape().rank();
  if (rank < least_rank_ || rank > most_rank_ || x.dim(-1) != channels_) {
    return ctx.Fail(absl::InvalidArgumentError(
        absl::StrCat("batch norm of ", channels_, " channels takes x", axes_,
                     ", got ", x.shape().ToString())));
  }
  Tensor w, b;
  if (weight_ != nullptr) {
    w = ctx.Use(*weight_);  // order recorded by plans
    b = ctx.Use(*bias_);
  }
  ops::RunningStats running;
  if (running_mean_ != nullptr) {
    running = {ctx.Use(*running_mean_), ctx.Use(*running_var_),
               ctx.Use(*num_batches_tracked_)};
  }
  ops::BatchNormOptions options;
  options.eps = options_.eps;
  options.momentum = options_.momentum;
  options.relu = options_.relu;
  options.sync_axis = sync_axis_;
  return ops::BatchNorm(ctx, x, w, b, running, options, residual);
}

void SynchroniseBatchNorms(Module& model, const std::string& axis) {
  if (auto* norm = dynamic_cast<BatchNorm*>(&model)) norm->set_sync_axis(axis);
  for (const auto& child : model.children()) {
    SynchroniseBatchNorms(*child, axis);
  }
}

std::unique_ptr<Module> ConvertSyncBatchNorm(std::unique_ptr<Module> model,
                                             const std::string& axis) {
  SynchroniseBatchNorms(*model, axis);
  return model;
}

}  // namespace troupe::nn
