#include "tools/trainer/config/model_kinds.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/models/gpt2.h"
#include "nn/models/models.h"
#include "nn/models/resnet.h"
#include "nn/models/vgg.h"
#include "nn/models/vit.h"

namespace troupe::tools {
namespace {

using ModelOr = absl::StatusOr<std::unique_ptr<nn::Sequential>>;

// Images of fewer rows enter a ResNet without its first pooling.
constexpr std::int64_t kImageNetStemRowsMin = 64;

// What a model is made for.
struct Wanted {
  const ModelConfig& config;
  const data::SampleSpec& spec;
  std::int64_t outputs;
};

enum class Takes { kNumbers, kImages, kTokens };

struct Kind {
  const char* name;
  Takes takes;
  ModelOr (*make)(const Wanted& wanted);
};

ModelOr MakeMlp(const Wanted& wanted) {
  std::vector<std::int64_t> widths = {wanted.spec.input_shape.numel()};
  widths.insert(widths.end(), wanted.config.widths.begin(),
                wanted.config.widths.end());
  widths.push_back(wanted.outputs);
  return nn::MakeMlp(widths, wanted.config.options);
}

template <int kDepth>
ModelOr MakeResNet(const Wanted& wanted) {
  const ModelConfig& config = wanted.config;
  nn::ResNetOptions options;
  options.in_channels = wanted.spec.input_shape[2];
  options.num_classes = wanted.outputs;
  options.zero_init_residual = config.zero_init_residual;
  const bool is_small = wanted.spec.input_shape[0] < kImageNetStemRowsMin;
  if (config.stem == "cifar" || (config.stem == "auto" && is_small)) {
    options.stem = nn::ResNetStem::kCifar;
  }
  return nn::MakeResNet(kDepth, options);
}

template <int kDepth, bool kBatchNorm>
ModelOr MakeVgg(const Wanted& wanted) {
  nn::VggOptions options;
  options.in_channels = wanted.spec.input_shape[2];
  options.num_classes = wanted.outputs;
  options.batch_norm = kBatchNorm;
  if (wanted.config.dropout >= 0) options.dropout = wanted.config.dropout;
  return nn::MakeVgg(kDepth, options);
}

ModelOr MakeGpt2(const Wanted& wanted) {
  const ModelConfig& config = wanted.config;
  TROUPE_ASSIGN_OR_RETURN(nn::Gpt2Options options, nn::Gpt2Preset(config.kind));
  if (config.depth > 0) options.layers = config.depth;
  if (config.heads > 0) options.heads = config.heads;
  if (config.width > 0) options.width = config.width;
  const std::int64_t tokens = wanted.spec.input_shape[0];
  options.context = config.context > 0 ? config.context : tokens;
  options.vocab_size = wanted.outputs;
  if (config.dropout >= 0) options.dropout = config.dropout;
  options.attention_dropout = config.attention_dropout >= 0
                                  ? config.attention_dropout
                                  : options.dropout;
  options.tie_head = config.tie_head;
  if (options.context >= tokens) return nn::MakeGpt2(options);
  return absl::InvalidArgumentError(absl::StrCat(
      "a context of ", options.context, " is shorter than ", tokens,
      " tokens; make model.context larger, or the "
      "samples shorter"));
}

ModelOr MakeVit(const Wanted& wanted) {
  const ModelConfig& config = wanted.config;
  const nn::Shape& image = wanted.spec.input_shape;
  if (image[0] != image[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("it takes square images, not ", image.ToString()));
  }
  TROUPE_ASSIGN_OR_RETURN(nn::VitOptions options, nn::VitPreset(config.kind));
  if (config.depth > 0) options.depth = config.depth;
  if (config.heads > 0) options.heads = config.heads;
  if (config.width > 0) options.width = config.width;
  if (config.patch_size > 0) options.patch_size = config.patch_size;
  options.image_size = image[0];
  options.in_channels = image[2];
  options.num_classes = wanted.outputs;
  return nn::MakeVit(options);
}

constexpr Kind kKinds[] = {
    {"lenet", Takes::kImages,
     [](const Wanted& w) -> ModelOr {
       return nn::MakeLeNet(w.spec.input_shape, w.outputs, w.config.options);
     }},
    {"mlp", Takes::kNumbers, MakeMlp},
    {"linear", Takes::kNumbers,
     [](const Wanted& w) -> ModelOr {
       return nn::MakeLinearModel(w.spec.input_shape.numel(), w.outputs,
                                  w.config.options);
     }},
    {"resnet18", Takes::kImages, MakeResNet<18>},
    {"resnet34", Takes::kImages, MakeResNet<34>},
    {"resnet50", Takes::kImages, MakeResNet<50>},
    {"resnet101", Takes::kImages, MakeResNet<101>},
    {"vgg11", Takes::kImages, MakeVgg<11, false>},
    {"vgg11_bn", Takes::kImages, MakeVgg<11, true>},
    {"vgg16", Takes::kImages, MakeVgg<16, false>},
    {"vgg16_bn", Takes::kImages, MakeVgg<16, true>},
    {"gpt_nano", Takes::kTokens, MakeGpt2},
    {"gpt_micro", Takes::kTokens, MakeGpt2},
    {"gpt_mini", Takes::kTokens, MakeGpt2},
    {"gpt2", Takes::kTokens, MakeGpt2},
    {"gpt2_medium", Takes::kTokens, MakeGpt2},
    {"gpt2_large", Takes::kTokens, MakeGpt2},
    {"gpt2_xl", Takes::kTokens, MakeGpt2},
    {"vit_tiny", Takes::kImages, MakeVit},
    {"vit_small", Takes::kImages, MakeVit},
    {"vit_base", Takes::kImages, MakeVit},
};

// Empty where `spec` has such samples; otherwise what is wanted.
std::string Misfit(Takes takes, const data::SampleSpec& spec) {
  const bool floats = nn::IsFloating(spec.input_dtype);
  switch (takes) {
    case Takes::kNumbers:
      return floats ? "" : "it takes images and vectors, not tokens";
    case Takes::kImages:
      if (floats && spec.input_shape.rank() == 3) return "";
      return "it takes images (H, W, C)";
    case Takes::kTokens:
      if (!floats && spec.input_shape.rank() == 1) return "";
      return "it takes tokens (T)";
  }
  return "";
}

}  // namespace

std::vector<std::string> ModelKinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModelOfKind(
    const ModelConfig& config, const data::SampleSpec& spec,
    std::int64_t outputs) {
  for (const Kind& kind : kKinds) {
    if (config.kind != kind.name) continue;
    const std::string misfit = Misfit(kind.takes, spec);
    if (!misfit.empty()) return absl::InvalidArgumentError(misfit);
    return kind.make({config, spec, outputs});
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no model.kind = \"", config.kind, "\""));
}

}  // namespace troupe::tools
