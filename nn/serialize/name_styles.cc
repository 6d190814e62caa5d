#include "nn/serialize/name_styles.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

// Names of a kind. In both patterns "#" stands for a number; "+" in ours for
// one more than that. A pattern that ends in "." or "_" is followed by one
// word, "weight" for example, which is the same on both sides.
struct NamePair {
  absl::string_view theirs;
  absl::string_view ours;
  int part = 0;
  int parts = 1;
};

constexpr NamePair kTransformersResNet[] = {
    {"embedder.embedder.convolution.", "conv1."},
    {"embedder.embedder.normalization.", "bn1."},
    {"encoder.stages.#.layers.#.layer.#.convolution.", "layer+.#.conv+."},
    {"encoder.stages.#.layers.#.layer.#.normalization.", "layer+.#.bn+."},
    {"encoder.stages.#.layers.#.shortcut.convolution.",
     "layer+.#.downsample.0."},
    {"encoder.stages.#.layers.#.shortcut.normalization.",
     "layer+.#.downsample.1."},
    {"classifier.1.", "fc."},
};

// Names of the ViTs of all versions of transformers come first.
constexpr NamePair kTransformersVit[] = {
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.position_embeddings", "pos_embed"},
    {"embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"layernorm.", "norm."},
    {"classifier.", "head."},
    // Version 4; 5 reads these names, too.
    {"encoder.layer.#.layernorm_before.", "blocks.#.norm1."},
    {"encoder.layer.#.layernorm_after.", "blocks.#.norm2."},
    {"encoder.layer.#.attention.attention.query.", "blocks.#.attn.qkv.", 0, 3},
    {"encoder.layer.#.attention.attention.key.", "blocks.#.attn.qkv.", 1, 3},
    {"encoder.layer.#.attention.attention.value.", "blocks.#.attn.qkv.", 2, 3},
    {"encoder.layer.#.attention.output.dense.", "blocks.#.attn.proj."},
    {"encoder.layer.#.intermediate.dense.", "blocks.#.mlp.fc1."},
    {"encoder.layer.#.output.dense.", "blocks.#.mlp.fc2."},
};

constexpr NamePair kOthers[] = {
    // transformers 5
    {"layers.#.layernorm_before.", "blocks.#.norm1."},
    {"layers.#.layernorm_after.", "blocks.#.norm2."},
    {"layers.#.attention.q_proj.", "blocks.#.attn.qkv.", 0, 3},
    {"layers.#.attention.k_proj.", "blocks.#.attn.qkv.", 1, 3},
    {"layers.#.attention.v_proj.", "blocks.#.attn.qkv.", 2, 3},
    {"layers.#.attention.o_proj.", "blocks.#.attn.proj."},
    {"layers.#.mlp.fc1.", "blocks.#.mlp.fc1."},
    {"layers.#.mlp.fc2.", "blocks.#.mlp.fc2."},
    // torchvision's ViT
    {"class_token", "cls_token"},
    {"conv_proj.", "patch_embed.proj."},
    {"encoder.pos_embedding", "pos_embed"},
    {"encoder.layers.encoder_layer_#.ln_1.", "blocks.#.norm1."},
    {"encoder.layers.encoder_layer_#.ln_2.", "blocks.#.norm2."},
    {"encoder.layers.encoder_layer_#.self_attention.in_proj_",
     "blocks.#.attn.qkv."},
    {"encoder.layers.encoder_layer_#.self_attention.out_proj.",
     "blocks.#.attn.proj."},
    {"encoder.layers.encoder_layer_#.mlp.0.", "blocks.#.mlp.fc1."},
    {"encoder.layers.encoder_layer_#.mlp.3.", "blocks.#.mlp.fc2."},
    {"encoder.layers.encoder_layer_#.mlp.linear_1.", "blocks.#.mlp.fc1."},
    {"encoder.layers.encoder_layer_#.mlp.linear_2.", "blocks.#.mlp.fc2."},
    {"encoder.ln.", "norm."},
    {"heads.head.", "head."},
};

// Parts of a name for which a pattern leaves room.
struct Matched {
  std::vector<std::int64_t> numbers;
  absl::string_view last;
};

bool IsOpen(absl::string_view pattern) {
  return pattern.back() == '.' || pattern.back() == '_';
}

std::optional<Matched> Match(absl::string_view pattern,
                             absl::string_view name) {
  const bool is_open = IsOpen(pattern);
  Matched matched;
  for (char c : pattern) {
    if (c != '#' && c != '+') {
      if (name.empty() || name[0] != c) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    std::size_t digits = 0;
    while (digits < name.size() && absl::ascii_isdigit(name[digits])) ++digits;
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(name.substr(0, digits), &number)) return std::nullopt;
    matched.numbers.push_back(c == '+' ? number - 1 : number);
    name.remove_prefix(digits);
  }
  const bool is_word =
      !name.empty() && name.find('.') == absl::string_view::npos;
  if (is_open ? !is_word : !name.empty()) return std::nullopt;
  matched.last = name;
  return matched;
}

std::string Filled(absl::string_view pattern, const Matched& matched) {
  std::string name;
  std::size_t next = 0;
  for (char c : pattern) {
    if (c == '#' || c == '+') {
      absl::StrAppend(&name, matched.numbers[next++] + (c == '+' ? 1 : 0));
    } else {
      name.push_back(c);
    }
  }
  return name.append(matched.last.begin(), matched.last.end());
}

template <std::size_t kCount>
std::optional<StyledName> OurNameIn(const NamePair (&pairs)[kCount],
                                    absl::string_view name) {
  for (const NamePair& pair : pairs) {
    const std::optional<Matched> matched = Match(pair.theirs, name);
    if (!matched.has_value()) continue;
    return StyledName{Filled(pair.ours, *matched), pair.part, pair.parts};
  }
  return std::nullopt;
}

template <std::size_t kCount>
std::vector<std::string> TheirNamesIn(const NamePair (&pairs)[kCount],
                                      absl::string_view wrapper,
                                      absl::string_view name) {
  std::vector<std::string> names;
  for (const NamePair& pair : pairs) {
    const std::optional<Matched> matched = Match(pair.ours, name);
    if (!matched.has_value()) continue;
    const bool is_head = absl::StartsWith(pair.theirs, "classifier.");
    names.push_back(
        absl::StrCat(is_head ? "" : wrapper, Filled(pair.theirs, *matched)));
  }
  return names;
}

}  // namespace

std::optional<StyledName> OurName(absl::string_view name) {
  std::optional<StyledName> ours = OurNameIn(kTransformersResNet, name);
  if (!ours.has_value()) ours = OurNameIn(kTransformersVit, name);
  if (!ours.has_value()) ours = OurNameIn(kOthers, name);
  return ours;
}

std::vector<std::string> TheirNames(NameStyle style, absl::string_view name) {
  return style == NameStyle::kTransformersResNet
             ? TheirNamesIn(kTransformersResNet, "resnet.", name)
             : TheirNamesIn(kTransformersVit, "vit.", name);
}

}  // namespace troupe::nn
