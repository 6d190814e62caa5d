#include "tools/trainer/config/model_kinds.h"

#include "absl/strings/str_cat.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "nn/models/gpt2.h"
#include "nn/models/models.h"
#include "nn/models/resnet.h"
#include "nn/models/vgg.h"
#include "nn/models/vit.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/kind_table.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::InitOptions;
using actors::JobSpec;
using Names = std::vector<std::string>;
using ModelOr = absl::StatusOr<std::unique_ptr<nn::Sequential>>;

// Limit on rows: smaller images enter a ResNet without its first pooling.
constexpr std::int64_t kImageNetStemRowsMin = 64;

// Requirements on a model.
struct Wanted {
  const ModelConfig& config;
  const data::SampleSpec& spec;
  std::int64_t outputs;
};

enum class Takes { kNumbers, kImages, kTokens };

struct ModelKind {
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
        absl::StrCat("it takes square images, not ", image.ToString(),
                     "; set data.image_size, or use another model.kind"));
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

constexpr ModelKind kModelKinds[] = {
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

constexpr ConfigKey kModelKeys[] = {
    {"model.kind", Field<&C::model, &ModelConfig::kind>(),
     OneOf([] { return KindNames(kModelKinds); }),
     "The network: \"lenet\" (convolutions, for images of at least 16x16), "
     "\"mlp\" (linear layers with ReLU), \"linear\" (one linear layer); "
     "\"resnet18\", \"resnet34\", \"resnet50\", \"resnet101\", \"vgg11\", "
     "\"vgg16\", with batch norm \"vgg11_bn\", \"vgg16_bn\", and \"vit_tiny\", "
     "\"vit_small\", \"vit_base\" for images; \"gpt_nano\", \"gpt_micro\", "
     "\"gpt_mini\", \"gpt2\", \"gpt2_medium\", \"gpt2_large\", \"gpt2_xl\" for "
     "text.",
     "\"mlp\""},
    {"model.widths", Field<&C::model, &ModelConfig::widths>(), kExtent,
     "Widths of the hidden layers of \"mlp\".", "[256, 128]"},
    {"model.layers", Field<&C::model, &ModelConfig::layers>(), kAny,
     "A network of your own, in place of model.kind: its layers, one after "
     "another. There are \"conv OUT KERNEL [stride=1] [pad=0] [dilation=1] "
     "[groups=1] [bias=1]\", \"convtranspose OUT KERNEL [stride=1] [pad=0] "
     "[bias=1]\", \"linear OUT [bias=1]\", \"embedding ROWS "
     "WIDTH\"; \"batchnorm\", \"layernorm\", \"rmsnorm\", \"groupnorm "
     "GROUPS\"; \"relu\", \"leakyrelu [slope=0.01]\", \"gelu [tanh=0]\", "
     "\"silu\", \"sigmoid\", \"tanh\"; \"maxpool KERNEL [stride=KERNEL] "
     "[pad=0]\", \"avgpool KERNEL [stride=KERNEL] [pad=0]\", "
     "\"adaptiveavgpool SIZE\"; \"flatten\" and \"dropout P\"; and \"stash "
     "NUMBER\", whose input \"popadd NUMBER\" or \"popconcat NUMBER\" adds to "
     "its own, or puts in front of it, further on.",
     "[\"conv 32 3 pad=1\", \"relu\", \"maxpool 2\", \"flatten\", \"linear "
     "10\"]"},
    {"model.num_classes", Field<&C::model, &ModelConfig::num_classes>(),
     kExtentOrNone,
     "Outputs of the model; 0 means as many as the data has classes. More than "
     "that takes the head of a network that was trained on other data.",
     "1000"},
    {"model.vocab_size", Field<&C::model, &ModelConfig::vocab_size>(),
     kExtentOrNone,
     "Tokens that a model of text knows; 0 means as many as the data has.",
     "50257"},
    {"model.depth", Field<&C::model, &ModelConfig::depth>(), AtMost(1000),
     "Blocks of a GPT-2 or ViT; 0 means as many as model.kind has.", "4"},
    {"model.heads", Field<&C::model, &ModelConfig::heads>(), kExtentOrNone,
     "Heads of their attention; 0 means as many as model.kind has.", "4"},
    {"model.width", Field<&C::model, &ModelConfig::width>(), kExtentOrNone,
     "Features between their blocks, a multiple of model.heads; 0 means as "
     "many as model.kind has.",
     "256"},
    {"model.context", Field<&C::model, &ModelConfig::context>(), kExtentOrNone,
     "Positions that a GPT-2 knows; 0 means as many as a sample has tokens.",
     "1024"},
    {"model.patch_size", Field<&C::model, &ModelConfig::patch_size>(),
     kExtentOrNone, "Rows and columns of the patches of a ViT; 0 means 16.",
     "4"},
    {"model.dropout", Field<&C::model, &ModelConfig::dropout>(),
     KeyRule{-1, 0.99},
     "Part of the elements that a VGG or GPT-2 drops in training; -1 means "
     "what "
     "model.kind has: 0.5 of VGG, 0 of GPT-2.",
     "0.1"},
    {"model.attention_dropout",
     Field<&C::model, &ModelConfig::attention_dropout>(), KeyRule{-1, 0.99},
     "Part of the attention probabilities that a GPT-2 drops in training; -1 "
     "means as model.dropout.",
     "0.1"},
    {"model.tie_head", Field<&C::model, &ModelConfig::tie_head>(), kAny,
     "Whether the head of a GPT-2 is its table of tokens. In a pipeline the "
     "first "
     "stage and the last then hold a copy each.",
     "false"},
    {"model.stem", Field<&C::model, &ModelConfig::stem>(), OneOf([] {
       return Names{"auto", "imagenet", "cifar"};
     }),
     "How images enter a ResNet: \"imagenet\" makes 224x224 of them 56x56, "
     "\"cifar\" leaves them; \"auto\" takes that below 64x64.",
     "\"cifar\""},
    {"model.zero_init_residual",
     Field<&C::model, &ModelConfig::zero_init_residual>(), kAny,
     "Whether the last batch norm of each block of a ResNet begins with weight "
     "0.",
     "true"},
    {"model.sync_batch_norm", Field<&C::model, &ModelConfig::sync_batch_norm>(),
     kAny,
     "Whether batch norms take their statistics over the micro-batches of all "
     "replicas; otherwise each replica has those of its own.",
     "true"},
    {"model.freeze", Field<&C::model, &ModelConfig::freeze>(), kAny,
     "Parameters that are not trained, by their names; * stands for any text.",
     "[\"features.*\"]"},
    {"model.init_from", Field<&C::job, &JobSpec::init, &InitOptions::from>(),
     kPath,
     "A file of weights to begin with, under PyTorch's names (safetensors, "
     "torch.save's, llm.c's), an index of several, or a folder with one of "
     "them; --init-from sets it. A run that goes on from a checkpoint does not "
     "read "
     "it.",
     "\"resnet18.safetensors\""},
    {"model.init_strict",
     Field<&C::job, &JobSpec::init, &InitOptions::strict>(), kAny,
     "Whether model.init_from must have the model's names and shapes, and no "
     "others; false takes what fits.",
     "false"},
    {"model.recompute", Field<&C::model, &ModelConfig::recompute>(), kAny,
     "Modules whose activations are not kept, by their names: backward runs "
     "them again, which costs time and saves memory, and changes no bit.",
     "[\"h.*\"]"},
    {"model.recompute_every", Field<&C::model, &ModelConfig::recompute_every>(),
     AtMost(1000),
     "The same for every n-th block of a network (those of ResNet, GPT-2, "
     "ViT); 1 means all, 0 none.",
     "1"},
    {"model.recompute_budget",
     Field<&C::model, &ModelConfig::recompute_budget_bytes>(),
     Bytes(0, KeyUnit::kBytes),
     "The same for as few blocks as bring the activations of a micro-batch "
     "below so many bytes; 0 sets no limit.",
     "\"512MiB\""},
    {"model.bias",
     Field<&C::model, &ModelConfig::options, &nn::ModelOptions::bias>(), kAny,
     "Whether layers add a bias.", "false"},
};

// Returns the expected samples; empty if `spec` has them.
std::string Misfit(Takes takes, const data::SampleSpec& spec) {
  const bool floats = nn::IsFloating(spec.input_dtype);
  switch (takes) {
    case Takes::kNumbers:
      return floats
                 ? ""
                 : "it takes images and vectors, not tokens; use model.kind = "
                   "\"gpt_nano\" or its like";
    case Takes::kImages:
      if (floats && spec.input_shape.rank() == 3) return "";
      return absl::StrCat("it takes images (H, W, C); use model.kind = ",
                          floats ? "\"mlp\"" : "\"gpt_nano\" or its like");
    case Takes::kTokens:
      if (!floats && spec.input_shape.rank() == 1) return "";
      return "it takes tokens (T); use model.kind = \"mlp\"";
  }
  return "";
}

}  // namespace

absl::Span<const ConfigKey> ModelKeys() { return kModelKeys; }

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModelOfKind(
    const ModelConfig& config, const data::SampleSpec& spec,
    std::int64_t outputs) {
  for (const ModelKind& kind : kModelKinds) {
    if (config.kind != kind.name) continue;
    const std::string misfit = Misfit(kind.takes, spec);
    if (!misfit.empty()) return absl::InvalidArgumentError(misfit);
    return kind.make({config, spec, outputs});
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no model.kind = \"", config.kind, "\"; choose one of ",
      absl::StrJoin(KindNames(kModelKinds), ", ")));
}

}  // namespace troupe::tools
