#include "nn/modules/conv1d.h"

#include <algorithm>
#include <cmath>

#include "nn/ops/conv1d.h"

namespace troupe::nn {

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels,
               const Window1d& window, const Options& options)
    : window_(window),
      options_(options),
      // The op reports groups that do not divide the channels.
      weight_(Declare(
          "weight",
          {out_channels,
           in_channels / std::max<std::int64_t>(options.groups, 1),
           window.kernel},
          Initializer::Uniform(
              1.0 / std::sqrt(in_channels /
                              std::max<std::int64_t>(options.groups, 1) *
                              window.kernel)),
          options.dtype)) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_channels}, weight_.init, options.dtype);
  }
}

Tensor Conv1d::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = ctx.Use(weight_);  // order recorded by plans
  const Tensor b = bias_ ? ctx.Use(*bias_) : Tensor();
  return ops::Conv1d(ctx, x, w, b, window_, options_);
}

}  // namespace troupe::nn
