#include "nn/modules/linear.h"

#include <cmath>

#include "nn/ops/linear.h"

namespace troupe::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features,
               const Options& options)
    : weight_(Declare("weight", {out_features, in_features},
                      Initializer::Uniform(1.0 / std::sqrt(in_features)),
                      options.dtype)) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_features}, weight_.init, options.dtype);
  }
}

Tensor Linear::Forward(Context& ctx, const Tensor& x) {
  const Tensor w = ctx.Use(weight_);  // order recorded by plans
  const Tensor b = bias_ ? ctx.Use(*bias_) : Tensor();
  return ops::Linear(ctx, x, w, b);
}

}  // namespace troupe::nn
