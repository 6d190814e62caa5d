#include "nn/modules/norm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/ops/add.h"
#include "nn/ops/norm.h"

namespace troupe::nn {
namespace {

Tensor UseIf(Context& ctx, Parameter* parameter) {
  return parameter ? ctx.Use(*parameter) : Tensor();
}

// Fails if x has other features than the module: an op without weights takes
// any number.
Tensor WrongFeatures(Context& ctx, const char* module, std::int64_t features,
                     const Tensor& x) {
  return ctx.Fail(absl::InvalidArgumentError(
      absl::StrCat(module, " of ", features, " features takes x[..., ",
                   features, "], got ", x.shape().ToString())));
}

bool HasFeatures(const Tensor& x, std::int64_t features) {
  return x.shape().rank() >= 1 && x.dim(-1) == features;
}

}  // namespace

ops::SumAndNorm RowNorm::AfterAdd(Context& ctx, const Tensor& x,
                                  const Tensor& branch) {
  // A norm that runs again in backward starts from the sum, which is kept.
  if (recomputes()) {
    const Tensor sum = ops::Add(ctx, x, branch);
    return {sum, (*this)(ctx, sum)};
  }
  TensorList both = CallMany(ctx, {x, branch});
  if (!ctx.ok()) return {};
  return {std::move(both[0]), std::move(both[1])};
}

TensorList RowNorm::ForwardMany(Context& ctx, absl::Span<const Tensor> xs) {
  if (xs.size() != 2) return Module::ForwardMany(ctx, xs);
  ops::SumAndNorm both = ForwardAfterAdd(ctx, xs[0], xs[1]);
  return {std::move(both.sum), std::move(both.normed)};
}

absl::Status RowNorm::Localise(absl::Span<const AxisPlace> places) {
  if (!parallel_) return absl::OkStatus();
  for (Parameter* parameter : affine_) LocaliseForTokens(*parameter, places);
  return absl::OkStatus();
}

Parameter* RowNorm::DeclareAffine(const char* name, const Shape& shape,
                                  double initial, DType dtype) {
  affine_.push_back(
      &Declare(name, shape, Initializer::Constant(initial), dtype));
  return affine_.back();
}

LayerNorm::LayerNorm(const Shape& normalized, const Options& options)
    : normalized_(normalized), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight_ = DeclareAffine("weight", normalized, 1, options.dtype);
  if (options.bias) bias_ = DeclareAffine("bias", normalized, 0, options.dtype);
}

Tensor LayerNorm::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = UseIf(ctx, weight_);  // order recorded by plans
  const Tensor b = UseIf(ctx, bias_);
  return ops::LayerNorm(ctx, x, normalized_, w, b, eps_);
}

ops::SumAndNorm LayerNorm::ForwardAfterAdd(Context& ctx, const Tensor& x,
                                           const Tensor& branch) {
  const Tensor w = UseIf(ctx, weight_);
  const Tensor b = UseIf(ctx, bias_);
  return ops::AddLayerNorm(ctx, x, branch, normalized_, w, b, eps_);
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels,
                     const Options& options)
    : groups_(groups), channels_(channels), eps_(options.eps) {
  if (!options.affine) return;
  weight_ =
      &Declare("weight", {channels}, Initializer::Constant(1), options.dtype);
  bias_ = &Declare("bias", {channels}, Initializer::Constant(0), options.dtype);
}

Tensor GroupNorm::Forward(Context& ctx, const Tensor& x) {
  if (!HasFeatures(x, channels_)) {
    return WrongFeatures(ctx, "GroupNorm", channels_, x);
  }
  const Tensor w = UseIf(ctx, weight_);
  const Tensor b = UseIf(ctx, bias_);
  return ops::GroupNorm(ctx, x, groups_, w, b, eps_);
}

RMSNorm::RMSNorm(std::int64_t features, const Options& options)
    : features_(features), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight_ = DeclareAffine("weight", {features}, 1, options.dtype);
}

Tensor RMSNorm::Forward(Context& ctx, const Tensor& x) {
  if (!HasFeatures(x, features_)) {
    return WrongFeatures(ctx, "RMSNorm", features_, x);
  }
  return ops::RmsNorm(ctx, x, UseIf(ctx, weight_), eps_);
}

ops::SumAndNorm RMSNorm::ForwardAfterAdd(Context& ctx, const Tensor& x,
                                         const Tensor& branch) {
  if (!HasFeatures(x, features_)) {
    return {Tensor(), WrongFeatures(ctx, "RMSNorm", features_, x)};
  }
  return ops::AddRmsNorm(ctx, x, branch, UseIf(ctx, weight_), eps_);
}

}  // namespace troupe::nn
