#include "nn/modules/linear.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
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
  if (!weight_.sharding.is_split()) return ops::Linear(ctx, x, w, b);
  const std::string& axis = weight_.sharding.axis;
  return parallel_ == kColumn ? ops::ColumnLinear(ctx, x, w, b, axis)
                              : ops::RowLinear(ctx, x, w, b, axis);
}

void Linear::set_parallel(Parallel parallel,
                          std::vector<std::int64_t> sections) {
  parallel_ = parallel;
  const int dim = parallel == kColumn ? 0 : 1;  // the weight is [out, in]
  weight_.sharding =
      parallel == kWhole ? Sharding() : SplitAlong(dim, std::move(sections));
  if (bias_ == nullptr) return;
  bias_->sharding = parallel == kColumn ? weight_.sharding : Sharding();
}

absl::Status Linear::Localise(absl::Span<const AxisPlace> places) {
  TROUPE_RETURN_IF_ERROR(LocaliseParameter(weight_, places));
  if (bias_ == nullptr) return absl::OkStatus();
  return LocaliseParameter(*bias_, places);
}

}  // namespace troupe::nn
