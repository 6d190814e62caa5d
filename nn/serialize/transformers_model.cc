#include "nn/serialize/transformers_model.h"

#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "nn/serialize/name_styles.h"
#include "nn/serialize/weight_file.h"

namespace troupe::nn {
namespace {

using Json = nlohmann::json;

// Rows of the token table from which on the end token of GPT-2 is in it.
constexpr std::int64_t kEndToken = 50256;
constexpr int kResNetStages = 4;
constexpr std::int64_t kResNetStemExtent = 7;

// Shapes of a model's tensors by their names.
class Shapes {
 public:
  explicit Shapes(absl::Span<const NamedTensor> tensors) {
    for (const NamedTensor& t : tensors) shapes_[t.name] = t.tensor.shape();
  }
  bool Has(absl::string_view name) const { return shapes_.contains(name); }
  // Returns an extent; 0 if there is no such tensor or axis.
  std::int64_t Extent(absl::string_view name, int axis) const {
    const auto found = shapes_.find(name);
    if (found == shapes_.end() || axis >= found->second.rank()) return 0;
    return found->second[axis];
  }
  // Number of blocks that have a tensor: "h.0.ln_1.weight", ...
  int Count(absl::string_view before, absl::string_view after) const {
    int count = 0;
    while (Has(absl::StrCat(before, count, after))) ++count;
    return count;
  }

 private:
  absl::flat_hash_map<std::string, Shape> shapes_;
};

absl::Status CheckHeads(std::int64_t width, std::int64_t heads) {
  if (heads > 0 && width % heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a width of ", width, " is no multiple of ", heads,
                   " heads; give the model's number of heads"));
}

void AddLabels(std::int64_t classes, Json& config) {
  for (std::int64_t i = 0; i < classes; ++i) {
    const std::string label = absl::StrCat("LABEL_", i);
    config["id2label"][absl::StrCat(i)] = label;
    config["label2id"][label] = i;
  }
}

Json Gpt2Config(const Shapes& shapes, std::int64_t heads) {
  const std::int64_t tokens = shapes.Extent("wte.weight", 0);
  Json config = {{"model_type", "gpt2"},
                 {"architectures", {"GPT2LMHeadModel"}},
                 {"vocab_size", tokens},
                 {"n_positions", shapes.Extent("wpe.weight", 0)},
                 {"n_embd", shapes.Extent("wte.weight", 1)},
                 {"n_layer", shapes.Count("h.", ".attn.c_attn.weight")},
                 {"n_head", heads},
                 {"activation_function", "gelu_new"},
                 {"layer_norm_epsilon", 1e-5},
                 {"tie_word_embeddings", !shapes.Has("lm_head.weight")}};
  const bool has_end = tokens > kEndToken;
  config["bos_token_id"] = has_end ? Json(kEndToken) : Json();
  config["eos_token_id"] = has_end ? Json(kEndToken) : Json();
  return config;
}

Json VitConfig(const Shapes& shapes, std::int64_t heads) {
  const std::int64_t patch = shapes.Extent("patch_embed.proj.weight", 2);
  const auto patches = static_cast<double>(shapes.Extent("pos_embed", 1) - 1);
  Json config = {
      {"model_type", "vit"},
      {"architectures", {"ViTForImageClassification"}},
      {"hidden_size", shapes.Extent("norm.weight", 0)},
      {"num_hidden_layers", shapes.Count("blocks.", ".attn.qkv.weight")},
      {"num_attention_heads", heads},
      {"intermediate_size", shapes.Extent("blocks.0.mlp.fc1.weight", 0)},
      {"image_size", std::llround(std::sqrt(patches)) * patch},
      {"patch_size", patch},
      {"num_channels", shapes.Extent("patch_embed.proj.weight", 1)},
      {"hidden_act", "gelu"},
      {"layer_norm_eps", 1e-6},
      {"hidden_dropout_prob", 0.0},
      {"attention_probs_dropout_prob", 0.0},
      {"qkv_bias", true}};
  AddLabels(shapes.Extent("head.weight", 0), config);
  return config;
}

Json ResNetConfig(const Shapes& shapes) {
  const bool is_deep = shapes.Has("layer1.0.conv3.weight");
  Json config = {{"model_type", "resnet"},
                 {"architectures", {"ResNetForImageClassification"}},
                 {"num_channels", shapes.Extent("conv1.weight", 1)},
                 {"embedding_size", shapes.Extent("conv1.weight", 0)},
                 {"layer_type", is_deep ? "bottleneck" : "basic"},
                 {"hidden_act", "relu"},
                 {"downsample_in_first_stage", false},
                 {"downsample_in_bottleneck", false}};
  const char* const last = is_deep ? ".0.conv3.weight" : ".0.conv2.weight";
  for (int i = 1; i <= kResNetStages; ++i) {
    const std::string stage = absl::StrCat("layer", i);
    config["hidden_sizes"].push_back(
        shapes.Extent(absl::StrCat(stage, last), 0));
    config["depths"].push_back(
        shapes.Count(absl::StrCat(stage, "."), ".conv1.weight"));
  }
  AddLabels(shapes.Extent("fc.weight", 0), config);
  return config;
}

absl::StatusOr<std::vector<NamedTensor>> Renamed(
    absl::Span<const NamedTensor> tensors, NameStyle style) {
  std::vector<NamedTensor> renamed;
  for (const NamedTensor& t : tensors) {
    const std::vector<std::string> names = TheirNames(style, t.name);
    if (names.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", t.name,
                       "\" has no name in transformers; use another format"));
    }
    const auto parts = static_cast<std::int64_t>(names.size());
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t rows = parts == 1 ? 0 : t.tensor.shape()[0] / parts;
      renamed.push_back(
          {names[i],
           parts == 1 ? t.tensor : t.tensor.Slice(i * rows, (i + 1) * rows)});
    }
  }
  return renamed;
}

}  // namespace

absl::StatusOr<TransformersModel> AsTransformers(
    absl::Span<const NamedTensor> tensors, std::int64_t heads,
    Allocator& allocator) {
  const Shapes shapes(tensors);
  TransformersModel model;
  Json config;
  if (shapes.Has("h.0.attn.c_attn.weight")) {
    TROUPE_RETURN_IF_ERROR(CheckHeads(shapes.Extent("wte.weight", 1), heads));
    TROUPE_ASSIGN_OR_RETURN(model.tensors,
                            AsTransformersGpt2(tensors, allocator));
    config = Gpt2Config(shapes, heads);
  } else if (shapes.Has("blocks.0.attn.qkv.weight")) {
    TROUPE_RETURN_IF_ERROR(CheckHeads(shapes.Extent("norm.weight", 0), heads));
    TROUPE_ASSIGN_OR_RETURN(model.tensors,
                            Renamed(tensors, NameStyle::kTransformersVit));
    config = VitConfig(shapes, heads);
  } else if (shapes.Has("layer1.0.conv1.weight")) {
    if (shapes.Extent("conv1.weight", 2) != kResNetStemExtent) {
      return absl::InvalidArgumentError(
          "a ResNet of transformers begins with a convolution of 7x7, model."
          "stem = \"imagenet\"; use --format=pt or --format=safetensors");
    }
    TROUPE_ASSIGN_OR_RETURN(model.tensors,
                            Renamed(tensors, NameStyle::kTransformersResNet));
    config = ResNetConfig(shapes);
  } else {
    return absl::InvalidArgumentError(
        "the model is neither a GPT-2 nor a ResNet nor a ViT, which are those "
        "that --format=hf writes; use --format=pt or --format=safetensors");
  }
  model.config = config.dump(/*indent=*/2) + "\n";
  return model;
}

}  // namespace troupe::nn
