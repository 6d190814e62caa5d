#include "nn/modules/conv2d.h"

#include <cmath>

#include "nn/ops/conv2d.h"

namespace troupe::nn {

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels,
               const Window2d& window, const Options& options)
    : window_(window),
      weight_(Declare(
          "weight",
          {out_channels, in_channels, window.kernel_h, window.kernel_w},
          Initializer::Uniform(
              1.0 / std::sqrt(in_channels * window.kernel_h * window.kernel_w)),
          options.dtype)) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_channels}, weight_.init, options.dtype);
  }
}

Tensor Conv2d::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = ctx.Use(weight_);  // in this order: plans record it
  const Tensor b = bias_ ? ctx.Use(*bias_) : Tensor();
  return ops::Conv2d(ctx, x, w, b, window_);
}

}  // namespace troupe::nn
