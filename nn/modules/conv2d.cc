#include "nn/modules/conv2d.h"

#include <algorithm>
#include <cmath>

#include "nn/ops/conv2d.h"

namespace troupe::nn {
namespace {

// Returns [O, C / groups, R, S]; the op reports groups that do not divide C.
Shape WeightShape(std::int64_t in, std::int64_t out, const Window2d& window,
                  std::int64_t groups) {
  return {out, in / std::max<std::int64_t>(groups, 1), window.kernel_h,
          window.kernel_w};
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels,
               const Window2d& window, const Options& options)
    : window_(window),
      options_(options),
      weight_(Declare(
          "weight",
          WeightShape(in_channels, out_channels, window, options.groups),
          Initializer::Uniform(
              1.0 / std::sqrt(in_channels /
                              std::max<std::int64_t>(options.groups, 1) *
                              window.kernel_h * window.kernel_w)),
          options.dtype)) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_channels}, weight_.init, options.dtype);
  }
}

Tensor Conv2d::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = ctx.Use(weight_);  // order recorded by plans
  const Tensor b = bias_ ? ctx.Use(*bias_) : Tensor();
  return ops::Conv2d(ctx, x, w, b, window_, options_);
}

}  // namespace troupe::nn
