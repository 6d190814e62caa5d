#include "nn/models/gpt2.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/modules/attention.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/position_embedding.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"

namespace troupe::nn {
namespace {

// Standard deviation of all initial weights (section 2.3 of the paper).
constexpr double kGpt2Stddev = 0.02;

struct Gpt2Size {
  const char* name;
  int layers;
  std::int64_t heads, width;
};
constexpr Gpt2Size kGpt2Sizes[] = {
    {"gpt_nano", 3, 3, 48},        {"gpt_micro", 4, 4, 128},
    {"gpt_mini", 6, 6, 192},       {"gpt2", 12, 12, 768},
    {"gpt2_medium", 24, 16, 1024}, {"gpt2_large", 36, 20, 1280},
    {"gpt2_xl", 48, 25, 1600},
};

class Gpt2Mlp : public Module {
 public:
  explicit Gpt2Mlp(std::int64_t width)
      : c_fc_(Add<Linear>("c_fc", width, 4 * width)),
        c_proj_(Add<Linear>("c_proj", 4 * width, width)) {
    c_fc_.set_parallel(Linear::kColumn);
    c_proj_.set_parallel(Linear::kRow);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return c_proj_(ctx, ops::Gelu(ctx, c_fc_(ctx, x), ops::GeluForm::kTanh));
  }

 private:
  Linear& c_fc_;
  Linear& c_proj_;
};

CausalSelfAttention::Options AttentionOf(const Gpt2Options& options) {
  CausalSelfAttention::Options attention;
  attention.attention_dropout = options.attention_dropout;
  return attention;
}

class Gpt2Block : public Module {
 public:
  explicit Gpt2Block(const Gpt2Options& options)
      : ln_1_(Add<LayerNorm>("ln_1", options.width)),
        attn_(Add<CausalSelfAttention>("attn", options.width, options.heads,
                                       AttentionOf(options))),
        drop_1_(Add<Dropout>("resid_dropout", options.dropout)),
        ln_2_(Add<LayerNorm>("ln_2", options.width)),
        mlp_(Add<Gpt2Mlp>("mlp", options.width)),
        drop_2_(Add<Dropout>("dropout", options.dropout)) {
    ln_1_.set_parallel(true);
    drop_1_.set_parallel(Dropout::kTokens);
    ln_2_.set_parallel(true);
    drop_2_.set_parallel(Dropout::kTokens);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const auto [y, normed] =
        ln_2_.AfterAdd(ctx, x, drop_1_(ctx, attn_(ctx, ln_1_(ctx, x))));
    return ops::Add(ctx, y, drop_2_(ctx, mlp_(ctx, normed)));
  }

 private:
  LayerNorm& ln_1_;
  CausalSelfAttention& attn_;
  Dropout& drop_1_;
  LayerNorm& ln_2_;
  Gpt2Mlp& mlp_;
  Dropout& drop_2_;
};

absl::Status Check(const Gpt2Options& options) {
  for (const auto& [name, value] :
       {std::pair<const char*, std::int64_t>("layers", options.layers),
        {"heads", options.heads},
        {"width", options.width},
        {"context", options.context},
        {"vocab_size", options.vocab_size}}) {
    if (value >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gpt2: ", name, " is ", value, "; must be at least 1"));
  }
  if (options.width % options.heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gpt2: a width of ", options.width, " is no multiple of ",
                   options.heads, " heads; choose a number that divides it"));
}

// Sets N(0, 0.02^2); 0.02 / sqrt(2 * layers) for projections into the residual
// stream, so that it does not grow with the depth. Biases are 0, norms 1.
void SetGpt2InitialValues(const Gpt2Options& options, Sequential& model) {
  const double residual = kGpt2Stddev / std::sqrt(2.0 * options.layers);
  for (Parameter* p : model.Parameters()) {
    if (absl::EndsWith(p->name, ".bias")) {
      p->init = Initializer::Constant(0);
    } else if (absl::EndsWith(p->name, ".c_proj.weight")) {
      p->init = Initializer::Normal(0, residual);
    } else if (p->shape.rank() == 2) {
      p->init = Initializer::Normal(0, kGpt2Stddev);
    }
  }
}

}  // namespace

std::vector<std::string> Gpt2PresetNames() {
  std::vector<std::string> names;
  for (const Gpt2Size& preset : kGpt2Sizes) names.push_back(preset.name);
  return names;
}

absl::StatusOr<Gpt2Options> Gpt2Preset(absl::string_view name) {
  for (const Gpt2Size& preset : kGpt2Sizes) {
    if (name != preset.name) continue;
    Gpt2Options options;
    options.layers = preset.layers;
    options.heads = preset.heads;
    options.width = preset.width;
    return options;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no GPT-2 \"", name, "\"; there are ",
                   absl::StrJoin(Gpt2PresetNames(), ", ")));
}

absl::StatusOr<std::unique_ptr<Sequential>> MakeGpt2(
    const Gpt2Options& options) {
  TROUPE_RETURN_IF_ERROR(Check(options));
  auto model = std::make_unique<Sequential>();
  auto& tokens =
      model->AppendNamed<Embedding>("wte", options.vocab_size, options.width);
  auto& positions = model->AppendNamed<PositionEmbedding>(
      "wpe", options.context, options.width);
  auto& drop = model->AppendNamed<Dropout>("drop", options.dropout);
  auto& blocks = model->AppendNamed<Sequential>("h");
  for (int i = 0; i < options.layers; ++i) blocks.Append<Gpt2Block>(options);
  auto& norm = model->AppendNamed<LayerNorm>("ln_f", options.width);
  Linear::Options head_options;
  head_options.bias = false;
  head_options.is_head = true;
  auto& head = model->AppendNamed<Linear>("lm_head", options.width,
                                          options.vocab_size, head_options);
  tokens.set_parallel(true);
  head.set_parallel(Linear::kVocabulary);
  positions.set_parallel(true);
  drop.set_parallel(Dropout::kTokens);
  norm.set_parallel(true);
  model->set_shares_tokens();
  if (options.tie_head) head.TieParameter("weight", tokens, "weight");
  SetGpt2InitialValues(options, *model);
  return model;
}

}  // namespace troupe::nn
