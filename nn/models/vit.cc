#include "nn/models/vit.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/modules/attention.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"
#include "nn/ops/attention.h"
#include "nn/ops/concat.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "nn/ops/tokens.h"

namespace troupe::nn {
namespace {

// Standard deviation of initial weights and positions, and the epsilon of
// norms, as in timm.
constexpr double kVitStddev = 0.02;
constexpr double kClassTokenStddev = 1e-6;
constexpr double kNormEps = 1e-6;

struct VitSize {
  const char* name;
  std::int64_t heads, width;
};
constexpr VitSize kVitSizes[] = {
    {"vit_tiny", 3, 192}, {"vit_small", 6, 384}, {"vit_base", 12, 768}};

LayerNorm::Options NormOptions() {
  LayerNorm::Options options;
  options.eps = kNormEps;
  return options;
}

// Maps images (N, H, W, C) to vectors (N, T, D), one for each patch, row by
// row.
class PatchEmbed : public Module {
 public:
  explicit PatchEmbed(const VitOptions& options)
      : proj_(Add<Conv2d>("proj", options.in_channels, options.width,
                          Window2d{options.patch_size, options.patch_size,
                                   options.patch_size, options.patch_size})) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor y = proj_(ctx, x);
    if (!ctx.ok()) return Tensor();
    const Shape& s = y.shape();
    return ops::Reshape(ctx, y, {s[0], s[1] * s[2], s[3]});
  }

 private:
  Conv2d& proj_;
};

// Maps (N, T, D) to (N, 1 + T, D): prepends the class token, and adds
// positions. If ranks share tokens, gives the rank's own.
class ClassAndPositions : public Module {
 public:
  ClassAndPositions(std::int64_t patches, std::int64_t width)
      : cls_token_(Declare("cls_token", {1, 1, width},
                           Initializer::Normal(0, kClassTokenStddev))),
        pos_embed_(Declare("pos_embed", {1, 1 + patches, width},
                           Initializer::TruncatedNormal(0, kVitStddev))) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor zeros =
        ctx.Empty("cls_token", {x.shape()[0], 1, x.shape()[2]}, x.dtype());
    if (ctx.computes()) {
      const absl::Status status = ctx.kernels().Fill(0.0, zeros);
      if (!status.ok()) return ctx.Fail(status);
    }
    const Tensor first = ops::Add(ctx, zeros, ctx.Use(cls_token_));
    const Tensor y = ops::Add(ctx, ops::Concat(ctx, {first, x}, /*axis=*/1),
                              ctx.Use(pos_embed_));
    return tokens_.size > 1 ? ops::TakeTokens(ctx, y, tokens_) : y;
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    tokens_ = TokensAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  AxisPlace tokens_;
  Parameter& cls_token_;
  Parameter& pos_embed_;
};

class Attention : public Module {
 public:
  Attention(std::int64_t width, std::int64_t heads)
      : qkv_(Add<Linear>("qkv", width, 3 * width)),
        proj_(Add<Linear>("proj", width, width)) {
    attention_.heads = heads;
    qkv_.set_parallel(Linear::kColumn, {width, width, width});
    proj_.set_parallel(Linear::kRow);
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    return LocaliseHeads(places, attention_);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return proj_(ctx, ops::PackedAttention(ctx, qkv_(ctx, x), attention_));
  }

 private:
  ops::AttentionOptions attention_;
  Linear& qkv_;
  Linear& proj_;
};

class VitMlp : public Module {
 public:
  explicit VitMlp(std::int64_t width)
      : fc1_(Add<Linear>("fc1", width, 4 * width)),
        fc2_(Add<Linear>("fc2", 4 * width, width)) {
    fc1_.set_parallel(Linear::kColumn);
    fc2_.set_parallel(Linear::kRow);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return fc2_(ctx, ops::Gelu(ctx, fc1_(ctx, x), ops::GeluForm::kExact));
  }

 private:
  Linear& fc1_;
  Linear& fc2_;
};

class VitBlock : public Module {
 public:
  explicit VitBlock(const VitOptions& options)
      : norm1_(Add<LayerNorm>("norm1", options.width, NormOptions())),
        attn_(Add<Attention>("attn", options.width, options.heads)),
        norm2_(Add<LayerNorm>("norm2", options.width, NormOptions())),
        mlp_(Add<VitMlp>("mlp", options.width)) {
    norm1_.set_parallel(true);
    norm2_.set_parallel(true);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const auto [y, normed] =
        norm2_.AfterAdd(ctx, x, attn_(ctx, norm1_(ctx, x)));
    return ops::Add(ctx, y, mlp_(ctx, normed));
  }

 private:
  LayerNorm& norm1_;
  Attention& attn_;
  LayerNorm& norm2_;
  VitMlp& mlp_;
};

// Maps (N, T, D) to (N, D): takes the vector of the class token, which the
// first of the ranks that share tokens has.
class TakeClass : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor first = ops::Slice(ctx, x, /*axis=*/1, 0, 1);
    if (tokens_.size > 1) {
      first = ops::Slice(ctx, ops::GatherTokens(ctx, first, tokens_),
                         /*axis=*/1, 0, 1);
    }
    return ops::Reshape(ctx, first, {x.shape()[0], x.shape()[2]});
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    tokens_ = TokensAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  AxisPlace tokens_;
};

absl::Status Check(const VitOptions& options) {
  for (const auto& [name, value] :
       {std::pair<const char*, std::int64_t>("depth", options.depth),
        {"heads", options.heads},
        {"width", options.width},
        {"image_size", options.image_size},
        {"patch_size", options.patch_size},
        {"in_channels", options.in_channels},
        {"num_classes", options.num_classes}}) {
    if (value >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("vit: ", name, " is ", value, "; must be at least 1"));
  }
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("vit: a width of ", options.width, " is no multiple of ",
                     options.heads, " heads; choose a number that divides it"));
  }
  if (options.image_size % options.patch_size == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "vit: images of ", options.image_size, "x", options.image_size,
      " do not divide into patches of ", options.patch_size, "x",
      options.patch_size, "; choose sizes that do"));
}

// Sets trunc_normal_(std=0.02) for linear layers, zeros for their biases; the
// convolution keeps its default.
void SetVitInitialValues(Sequential& model) {
  for (Parameter* p : model.Parameters()) {
    if (absl::StartsWith(p->name, "patch_embed.")) continue;
    if (absl::EndsWith(p->name, ".bias")) {
      p->init = Initializer::Constant(0);
    } else if (p->shape.rank() == 2) {
      p->init = Initializer::TruncatedNormal(0, kVitStddev);
    }
  }
}

}  // namespace

std::vector<std::string> VitPresetNames() {
  std::vector<std::string> names;
  for (const VitSize& preset : kVitSizes) names.push_back(preset.name);
  return names;
}

absl::StatusOr<VitOptions> VitPreset(absl::string_view name) {
  for (const VitSize& preset : kVitSizes) {
    if (name != preset.name) continue;
    VitOptions options;
    options.heads = preset.heads;
    options.width = preset.width;
    return options;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ViT \"", name, "\"; there are ",
                   absl::StrJoin(VitPresetNames(), ", ")));
}

absl::StatusOr<std::unique_ptr<Sequential>> MakeVit(const VitOptions& options) {
  TROUPE_RETURN_IF_ERROR(Check(options));
  const std::int64_t side = options.image_size / options.patch_size;
  auto model = std::make_unique<Sequential>();
  model->AppendNamed<PatchEmbed>("patch_embed", options);
  model->AppendNamed<ClassAndPositions>("", side * side, options.width);
  auto& blocks = model->AppendNamed<Sequential>("blocks");
  for (int i = 0; i < options.depth; ++i) blocks.Append<VitBlock>(options);
  auto& norm =
      model->AppendNamed<LayerNorm>("norm", options.width, NormOptions());
  norm.set_parallel(true);
  model->AppendNamed<TakeClass>("pool");
  model->AppendNamed<Linear>("head", options.width, options.num_classes);
  model->set_shares_tokens();
  SetVitInitialValues(*model);
  return model;
}

}  // namespace troupe::nn
