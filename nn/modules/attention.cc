#include "nn/modules/attention.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/ops/compare.h"
#include "nn/ops/dropout.h"
#include "nn/ops/linear.h"
#include "nn/ops/rank_sum.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "nn/ops/tokens.h"
#include "nn/ops/where.h"

namespace troupe::nn {
namespace {

Linear::Options LinearOptions(bool bias, DType dtype) {
  Linear::Options options;
  options.bias = bias;
  options.dtype = dtype;
  return options;
}

void ZeroBias(Linear& linear) {
  for (Parameter* parameter : linear.Parameters()) {
    if (parameter->name == "bias") parameter->init = Initializer::Constant(0);
  }
}

void InitWeight(const Initializer& init, Linear& linear) {
  for (Parameter* parameter : linear.Parameters()) {
    if (parameter->name == "weight") parameter->init = init;
  }
}

ops::AttentionOptions HeadsOf(std::int64_t heads, std::int64_t kv_heads,
                              bool causal, double dropout) {
  ops::AttentionOptions options;
  options.heads = heads;
  options.kv_heads = kv_heads > 0 ? kv_heads : heads;
  options.causal = causal;
  options.dropout = dropout;
  return options;
}

// Returns 0 if `heads` does not divide `width`: the ops report it in Forward().
std::int64_t HeadWidth(std::int64_t width, std::int64_t heads) {
  return heads > 0 && width % heads == 0 ? width / heads : 0;
}

// Fails with kInvalidArgument: `heads` does not divide `width`.
Tensor FailHeads(Context& ctx, std::int64_t width, std::int64_t heads) {
  return ctx.Fail(absl::InvalidArgumentError(
      absl::StrCat("attention of width ", width, " cannot have ", heads,
                   " heads; choose a number that divides it")));
}

}  // namespace

absl::Status LocaliseHeads(absl::Span<const AxisPlace> places,
                           ops::AttentionOptions& options) {
  const AxisPlace place = PlaceAlong(places, "tp");
  const std::int64_t keys =
      options.kv_heads > 0 ? options.kv_heads : options.heads;
  if (options.heads % place.size != 0 || keys % place.size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention of ", options.heads, " heads",
        keys == options.heads ? "" : absl::StrCat(", and ", keys, " of keys,"),
        " cannot be cut for tp = ", place.size,
        "; choose multiples of it, or another tp"));
  }
  options.heads /= place.size;
  options.kv_heads /= place.size;
  options.first_head = place.coord * options.heads;
  return absl::OkStatus();
}

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads,
                                       const Options& options)
    : width_(width),
      heads_(heads),
      options_(options),
      attention_(HeadsOf(heads, heads, options.causal, options.dropout)),
      in_weight_(Declare("in_proj_weight", {3 * width, width},
                         Initializer::Uniform(std::sqrt(6.0 / (4 * width))),
                         options.dtype)),
      out_proj_(Add<Linear>("out_proj", width, width,
                            LinearOptions(options.bias, options.dtype))) {
  set_many_tensors();
  if (options.bias) {
    in_bias_ = &Declare("in_proj_bias", {3 * width}, Initializer::Constant(0),
                        options.dtype);
    in_bias_->sharding = SplitAlong(/*dim=*/0, {width, width, width});
  }
  ZeroBias(out_proj_);
  in_weight_.sharding = SplitAlong(/*dim=*/0, {width, width, width});
  out_proj_.set_parallel(Linear::kRow);
}

absl::Status MultiheadAttention::Localise(absl::Span<const AxisPlace> places) {
  TROUPE_RETURN_IF_ERROR(LocaliseHeads(places, attention_));
  tokens_ = TokensAlong(places, in_weight_.sharding.axis);
  TROUPE_RETURN_IF_ERROR(LocaliseParameter(in_weight_, places));
  if (in_bias_ == nullptr) return absl::OkStatus();
  return LocaliseParameter(*in_bias_, places);
}

Tensor MultiheadAttention::CallMasked(Context& ctx, absl::Span<const Tensor> xs,
                                      const Masks& masks) {
  TensorList all(xs.begin(), xs.end());
  // A wrong number of tensors is left to ForwardMany().
  if (!xs.empty() && xs.size() <= 3) {
    while (all.size() < 3) all.push_back(Tensor(all.back()));
    for (const Tensor& mask :
         {masks.key_padding_mask, masks.attn_mask, masks.attn_bias}) {
      all.push_back(mask);
    }
  }
  const TensorList ys = CallMany(ctx, all);
  return ys.empty() ? Tensor() : ys[0];
}

TensorList MultiheadAttention::ForwardMany(Context& ctx,
                                           absl::Span<const Tensor> xs) {
  if (HeadWidth(width_, heads_) == 0) {
    FailHeads(ctx, width_, heads_);
    return {};
  }
  Tensor y;
  if (xs.size() == 1) {
    y = Self(ctx, xs[0]);
  } else if (xs.size() == 2) {
    y = Cross(ctx, xs[0], xs[1]);
  } else if (xs.size() == 3) {
    y = Apart(ctx, xs, {});
  } else if (xs.size() == 6) {
    y = Apart(ctx, xs.subspan(0, 3), MaskOf(ctx, {xs[3], xs[4], xs[5]}));
  } else {
    ctx.Fail(absl::InvalidArgumentError(absl::StrCat(
        "attention takes {x}, {query, memory} or {query, key, value}, got ",
        xs.size(), " tensors")));
  }
  if (!ctx.ok()) return {};
  return {out_proj_(ctx, y)};
}

Tensor MultiheadAttention::Project(Context& ctx, const Tensor& x, int begin,
                                   int end) {
  const Tensor w = ctx.Use(in_weight_);
  const Tensor b = in_bias_ ? ctx.Use(*in_bias_) : Tensor();
  const bool is_cut = in_weight_.sharding.is_split();
  const std::string axis = is_cut ? in_weight_.sharding.axis : "";
  const std::int64_t width = attention_.heads * HeadWidth(width_, heads_);
  const bool tokens = tokens_.size > 1;
  const ops::SharedBlocks blocks = DepthBlocksOf(in_weight_, begin, end);
  if (begin > 0 || end < 3) {
    if (!tokens) {
      return ops::LinearRows(ctx, x, w, b, begin * width, end * width, axis,
                             blocks);
    }
    // The gather adds up dx.
    const Tensor whole =
        ops::GatherTokens(ctx, x, tokens_, ops::Gradient::kParts);
    return ops::LinearRows(ctx, whole, w, b, begin * width, end * width);
  }
  if (tokens) return ops::ColumnLinearOfTokens(ctx, x, w, b, tokens_);
  return is_cut || blocks != nullptr
             ? ops::ColumnLinear(ctx, x, w, b, axis, blocks)
             : ops::Linear(ctx, x, w, b);
}

Tensor MultiheadAttention::Self(Context& ctx, const Tensor& x) {
  const Tensor qkv = Project(ctx, x, 0, 3);
  return ops::PackedAttention(ctx, Turn(ctx, qkv, 2 * attention_.heads),
                              attention_);
}

Tensor MultiheadAttention::Cross(Context& ctx, const Tensor& query,
                                 const Tensor& memory) {
  const Tensor q = Project(ctx, query, 0, 1);
  const Tensor kv = Project(ctx, memory, 1, 3);
  return ops::PackedAttention(ctx, Turn(ctx, q, attention_.heads),
                              Turn(ctx, kv, attention_.heads), attention_);
}

Tensor MultiheadAttention::Apart(Context& ctx, absl::Span<const Tensor> xs,
                                 const ops::AttentionMask& mask) {
  Tensor parts[3];
  for (int i = 0; i < 3; ++i) parts[i] = Project(ctx, xs[i], i, i + 1);
  return ops::MaskedAttention(ctx, Turn(ctx, parts[0], attention_.heads),
                              Turn(ctx, parts[1], attention_.heads), parts[2],
                              mask, attention_);
}

ops::AttentionMask MultiheadAttention::MaskOf(Context& ctx,
                                              const Masks& masks) const {
  ops::AttentionMask seen;
  if (masks.key_padding_mask.defined()) {
    seen.mask = ops::KeyPaddingMask(ctx, masks.key_padding_mask);
  }
  if (masks.attn_mask.defined()) {
    const Tensor visible = ops::Equal(ctx, OfHeads(ctx, masks.attn_mask), 0);
    seen.mask = seen.mask.defined() ? ops::Where(ctx, visible, seen.mask, 0.0)
                                    : visible;
  }
  Tensor bias = masks.attn_bias;
  // Each rank uses the bias for its heads, which give a part of its gradient.
  if (bias.defined() && in_weight_.sharding.is_split()) {
    bias = ops::RankSumOfGradient(ctx, bias, in_weight_.sharding.axis);
  }
  seen.bias = OfHeads(ctx, bias);
  return seen;
}

Tensor MultiheadAttention::OfHeads(Context& ctx, const Tensor& mask) const {
  if (!mask.defined()) return mask;
  Tensor by_head = mask;
  if (mask.shape().rank() == 3 && mask.dim(0) % heads_ == 0) {
    by_head = ops::Reshape(
        ctx, mask, {mask.dim(0) / heads_, heads_, mask.dim(1), mask.dim(2)});
  }
  if (!in_weight_.sharding.is_split() || by_head.shape().rank() != 4 ||
      by_head.dim(1) != heads_) {
    return by_head;
  }
  const std::int64_t first = attention_.first_head;
  return ops::Slice(ctx, by_head, /*axis=*/1, first, first + attention_.heads);
}

Tensor MultiheadAttention::Turn(Context& ctx, const Tensor& x,
                                std::int64_t heads) {
  if (!options_.rotary || !ctx.ok()) return x;
  ops::RotaryOptions rotary = *options_.rotary;
  rotary.head_width = HeadWidth(width_, heads_);
  rotary.heads = heads;
  return ops::Rotary(ctx, x, rotary);
}

CausalSelfAttention::CausalSelfAttention(std::int64_t width, std::int64_t heads,
                                         const Options& options)
    : head_width_(HeadWidth(width, heads)),
      options_(options),
      attention_(HeadsOf(heads, options.kv_heads, /*causal=*/true,
                         options.attention_dropout)),
      c_attn_(Add<Linear>("c_attn", width,
                          width + 2 * attention_.kv_heads * head_width_,
                          LinearOptions(options.bias, options.dtype))),
      c_proj_(Add<Linear>("c_proj", width, width,
                          LinearOptions(options.bias, options.dtype))) {
  InitWeight(Initializer::Normal(0, options.init_stddev), c_attn_);
  InitWeight(Initializer::Normal(0, options.projection_init_stddev), c_proj_);
  ZeroBias(c_attn_);
  ZeroBias(c_proj_);
  const std::int64_t keys = attention_.kv_heads * head_width_;
  c_attn_.set_parallel(Linear::kColumn, {width, keys, keys});
  c_proj_.set_parallel(Linear::kRow);
}

absl::Status CausalSelfAttention::Localise(absl::Span<const AxisPlace> places) {
  tokens_ = TokensAlong(places, "tp");
  return LocaliseHeads(places, attention_);
}

Tensor CausalSelfAttention::Forward(Context& ctx, const Tensor& x) {
  if (head_width_ == 0) {
    return FailHeads(ctx, x.shape().rank() > 0 ? x.dim(-1) : 0,
                     attention_.heads);
  }
  Tensor qkv = c_attn_(ctx, x);
  if (options_.rotary && ctx.ok()) {
    ops::RotaryOptions rotary = *options_.rotary;
    rotary.head_width = head_width_;
    rotary.heads = attention_.heads + attention_.kv_heads;
    qkv = ops::Rotary(ctx, qkv, rotary);
  }
  const Tensor y = c_proj_(ctx, ops::PackedAttention(ctx, qkv, attention_));
  if (tokens_.size <= 1 || !ctx.ok()) {
    return ops::Dropout(ctx, y, options_.dropout);
  }
  return ops::DropoutOfPart(ctx, y, options_.dropout,
                            ops::PieceOfTokens(y, tokens_));
}

}  // namespace troupe::nn
