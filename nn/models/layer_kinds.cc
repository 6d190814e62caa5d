#include "nn/models/layer_kinds.h"

#include "absl/strings/str_cat.h"
#include "nn/modules/activation.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/conv_transpose2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"
#include "nn/modules/skip.h"

namespace troupe::nn {
namespace {

using ModulePtr = std::unique_ptr<Module>;

bool HasBias(const LayerText& layer) {
  return layer.Option("bias", layer.model.bias ? 1 : 0) == 1;
}

ModulePtr MakeConv(const LayerText& layer) {
  const std::int64_t k = layer.Integer(1);
  const std::int64_t stride = layer.IntegerOption("stride", 1);
  const std::int64_t pad = layer.IntegerOption("pad", 0);
  Window2d window{k, k, stride, stride, pad, pad};
  window.dilation_h = window.dilation_w = layer.IntegerOption("dilation", 1);
  Conv2d::Options options;
  options.groups = layer.IntegerOption("groups", 1);
  options.bias = HasBias(layer);
  options.dtype = layer.model.dtype;
  return std::make_unique<Conv2d>(layer.width(), layer.Integer(0), window,
                                  options);
}

ModulePtr MakeConvTranspose(const LayerText& layer) {
  const std::int64_t k = layer.Integer(1);
  const std::int64_t stride = layer.IntegerOption("stride", 1);
  const std::int64_t pad = layer.IntegerOption("pad", 0);
  ConvTranspose2d::Options options;
  options.bias = HasBias(layer);
  options.dtype = layer.model.dtype;
  return std::make_unique<ConvTranspose2d>(
      layer.width(), layer.Integer(0), Window2d{k, k, stride, stride, pad, pad},
      options);
}

// Makes one end of the skip connection with the layer's number.
template <typename End>
ModulePtr MakeSkip(const LayerText& layer) {
  return std::make_unique<End>(absl::StrCat(layer.Integer(0)));
}

ModulePtr MakeLinear(const LayerText& layer) {
  const Linear::Options options = {HasBias(layer), layer.model.dtype,
                                   /*is_head=*/layer.is_last};
  return std::make_unique<Linear>(layer.width(), layer.Integer(0), options);
}

ModulePtr MakeEmbedding(const LayerText& layer) {
  return std::make_unique<Embedding>(layer.Integer(0), layer.Integer(1),
                                     layer.model.dtype);
}

template <typename Norm>
ModulePtr MakeNorm(const LayerText& layer) {
  typename Norm::Options options;
  options.dtype = layer.model.dtype;
  return std::make_unique<Norm>(layer.width(), options);
}

// Makes the batch norm for images, or the one for vectors and sequences.
ModulePtr MakeBatchNorm(const LayerText& layer) {
  return layer.input.shape.rank() == 4 ? MakeNorm<BatchNorm2d>(layer)
                                       : MakeNorm<BatchNorm1d>(layer);
}

ModulePtr MakeGroupNorm(const LayerText& layer) {
  GroupNorm::Options options;
  options.dtype = layer.model.dtype;
  return std::make_unique<GroupNorm>(layer.Integer(0), layer.width(), options);
}

template <typename Pool>
ModulePtr MakePool(const LayerText& layer) {
  return std::make_unique<Pool>(layer.Integer(0),
                                layer.IntegerOption("stride", 0),
                                layer.IntegerOption("pad", 0));
}

template <typename M>
ModulePtr MakePlain(const LayerText&) {
  return std::make_unique<M>();
}

double ConvWeights(const LayerText& layer) {
  return double(layer.width()) * layer.numbers[0] * layer.numbers[1] *
         layer.numbers[1];
}

std::vector<LayerKind> AllKinds() {
  constexpr auto kCount = LayerNumber::kCount;
  constexpr auto kWhole = LayerNumber::kWhole;
  constexpr auto kSwitch = LayerNumber::kSwitch;
  constexpr auto kFraction = LayerNumber::kFraction;
  const std::map<std::string, LayerNumber> pool = {{"stride", kCount},
                                                   {"pad", kWhole}};
  return {
      {"conv",
       "conv OUT KERNEL [stride=1] [pad=0] [dilation=1] [groups=1] [bias=1]",
       {kCount, kCount},
       {{"stride", kCount},
        {"pad", kWhole},
        {"dilation", kCount},
        {"groups", kCount},
        {"bias", kSwitch}},
       MakeConv,
       ConvWeights},
      {"convtranspose",
       "convtranspose OUT KERNEL [stride=1] [pad=0] [bias=1]",
       {kCount, kCount},
       {{"stride", kCount}, {"pad", kWhole}, {"bias", kSwitch}},
       MakeConvTranspose,
       ConvWeights},
      {"linear",
       "linear OUT [bias=1]",
       {kCount},
       {{"bias", kSwitch}},
       MakeLinear,
       [](const LayerText& l) { return double(l.width()) * l.numbers[0]; }},
      {"embedding",
       "embedding ROWS WIDTH",
       {kCount, kCount},
       {},
       MakeEmbedding,
       [](const LayerText& l) { return l.numbers[0] * l.numbers[1]; }},
      {"batchnorm", "batchnorm", {}, {}, MakeBatchNorm},
      {"layernorm", "layernorm", {}, {}, MakeNorm<LayerNorm>},
      {"rmsnorm", "rmsnorm", {}, {}, MakeNorm<RMSNorm>},
      {"groupnorm", "groupnorm GROUPS", {kCount}, {}, MakeGroupNorm},
      {"relu", "relu", {}, {}, MakePlain<ReLU>},
      {"leakyrelu",
       "leakyrelu [slope=0.01]",
       {},
       {{"slope", kFraction}},
       [](const LayerText& l) -> ModulePtr {
         return std::make_unique<LeakyReLU>(l.Option("slope", 0.01));
       }},
      {"gelu",
       "gelu [tanh=0]",
       {},
       {{"tanh", kSwitch}},
       [](const LayerText& l) -> ModulePtr {
         return std::make_unique<GELU>(l.Option("tanh", 0) == 1
                                           ? ops::GeluForm::kTanh
                                           : ops::GeluForm::kExact);
       }},
      {"silu", "silu", {}, {}, MakePlain<SiLU>},
      {"sigmoid", "sigmoid", {}, {}, MakePlain<Sigmoid>},
      {"tanh", "tanh", {}, {}, MakePlain<Tanh>},
      {"flatten", "flatten", {}, {}, MakePlain<Flatten>},
      {"maxpool",
       "maxpool KERNEL [stride=KERNEL] [pad=0]",
       {kCount},
       pool,
       MakePool<MaxPool2d>},
      {"avgpool",
       "avgpool KERNEL [stride=KERNEL] [pad=0]",
       {kCount},
       pool,
       MakePool<AvgPool2d>},
      {"adaptiveavgpool",
       "adaptiveavgpool SIZE",
       {kCount},
       {},
       [](const LayerText& l) -> ModulePtr {
         return std::make_unique<AdaptiveAvgPool2d>(l.Integer(0));
       }},
      {"stash", "stash NUMBER", {kWhole}, {}, MakeSkip<Stash>},
      {"popadd", "popadd NUMBER", {kWhole}, {}, MakeSkip<PopAdd>},
      {"popconcat", "popconcat NUMBER", {kWhole}, {}, MakeSkip<PopConcat>},
      {"dropout",
       "dropout P",
       {kFraction},
       {},
       [](const LayerText& l) -> ModulePtr {
         return std::make_unique<Dropout>(l.numbers[0]);
       }},
  };
}

}  // namespace

absl::Span<const LayerKind> LayerKinds() {
  static const auto* const kinds = new std::vector<LayerKind>(AllKinds());
  return *kinds;
}

const LayerKind* FindLayerKind(absl::string_view name) {
  for (const LayerKind& kind : LayerKinds()) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

}  // namespace troupe::nn
