#include "nn/modules/linear.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "nn/autograd/kv_cache.h"
#include "nn/ops/linear.h"

namespace troupe::nn {
namespace {

// Returns the only position of x [1, T, features] that is asked for, or x.
Tensor WantedOf(Context& ctx, const Tensor& x) {
  const KvCache* const cache = ctx.kv_cache();
  const std::int64_t wanted = cache != nullptr ? cache->places().wanted : -1;
  if (wanted < 0 || x.shape().rank() != 3 || x.dim(0) != 1 ||
      wanted >= x.dim(1)) {
    return x;
  }
  const std::int64_t width = x.dim(2);
  return x.FlatView(wanted * width, {1, 1, width});
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features,
               const Options& options)
    : weight_(Declare("weight", {out_features, in_features},
                      Initializer::Uniform(1.0 / std::sqrt(in_features)),
                      options.dtype)),
      is_head_(options.is_head) {
  if (options.bias) {
    bias_ = &Declare("bias", {out_features}, weight_.init, options.dtype);
  }
}

Tensor Linear::Forward(Context& ctx, const Tensor& input) {
  const Tensor x = is_head_ && ctx.ok() ? WantedOf(ctx, input) : input;
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
