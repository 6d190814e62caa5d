#include "nn/modules/linear.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "nn/autograd/kv_cache.h"
#include "nn/ops/rank_sum.h"
#include "nn/ops/tokens.h"

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
  const bool is_split = weight_.sharding.is_split();
  if (!is_split && blocks_ == nullptr) return ops::Linear(ctx, x, w, b);
  const std::string axis = is_split ? weight_.sharding.axis : "";
  const bool tokens = tokens_.size > 1;
  if (parallel_ == kRow) {
    return tokens ? ops::RowLinearOfTokens(ctx, x, w, b, tokens_)
                  : ops::RowLinear(ctx, x, w, b, axis, blocks_);
  }
  const Tensor part = tokens ? ops::ColumnLinearOfTokens(ctx, x, w, b, tokens_)
                             : ops::ColumnLinear(ctx, x, w, b, axis, blocks_);
  if (parallel_ == kColumn || keeps_split_ || !is_split) return part;
  return ops::GatherColumns(ctx, part, weight_.global_shape[0], axis);
}

void Linear::set_parallel(Parallel parallel,
                          std::vector<std::int64_t> sections) {
  parallel_ = parallel;
  weight_.sharding = Sharding();  // the weight is [out, in]
  if (parallel == kColumn) weight_.sharding = SplitAlong(0, sections);
  if (parallel == kRow) weight_.sharding = SplitAlong(1, std::move(sections));
  if (parallel == kVocabulary) weight_.sharding = RowsOfVocabulary();
  if (bias_ == nullptr) return;
  bias_->sharding = parallel == kRow ? Sharding() : weight_.sharding;
}

absl::Status Linear::Localise(absl::Span<const AxisPlace> places) {
  TROUPE_RETURN_IF_ERROR(LocaliseParameter(weight_, places));
  blocks_ = DepthBlocksOf(weight_);
  tokens_ = TokensAlong(places, weight_.sharding.axis);
  if (bias_ == nullptr) return absl::OkStatus();
  if (parallel_ == kRow) LocaliseForTokens(*bias_, places);
  return LocaliseParameter(*bias_, places);
}

std::optional<ops::SplitLogits> Linear::KeepSplit() {
  const Sharding& sharding = weight_.sharding;
  if (parallel_ != kVocabulary ||
      (!sharding.is_split() && blocks_ == nullptr)) {
    return std::nullopt;
  }
  keeps_split_ = true;
  ops::SplitLogits split;
  split.axis = sharding.is_split() ? sharding.axis : "";
  split.classes = WholeShape(weight_)[0];
  split.blocks = sharding.blocks > 1 ? sharding.blocks / sharding.size : 1;
  return split;
}

}  // namespace troupe::nn
