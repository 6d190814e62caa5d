#include "nn/modules/conv_transpose2d.h"

#include <algorithm>
#include <cmath>

namespace troupe::nn {

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels,
                                 std::int64_t out_channels,
                                 const Window2d& window, const Options& options)
    : window_(window),
      options_(options),
      // The op reports groups that do not divide the channels.
      weight_(Declare(
          "weight",
          {in_channels,
           out_channels / std::max<std::int64_t>(options.groups, 1),
           window.kernel_h, window.kernel_w},
          Initializer::Uniform(
              1.0 / std::sqrt(out_channels /
                              std::max<std::int64_t>(options.groups, 1) *
                              window.kernel_h * window.kernel_w)),
          options.dtype)) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_channels}, weight_.init, options.dtype);
  }
}

Tensor ConvTranspose2d::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = ctx.Use(weight_);  // order recorded by plans
  const Tensor b = bias_ ? ctx.Use(*bias_) : Tensor();
  return ops::ConvTranspose2d(ctx, x, w, b, window_, options_);
}

}  // namespace troupe::nn
