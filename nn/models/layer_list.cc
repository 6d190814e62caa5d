#include "nn/models/layer_list.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"

namespace troupe::nn {
namespace {

using ModulePtr = std::unique_ptr<Module>;

// Limit on one number of a layer, and on the weights of one: more is a slip of
// the pen.
constexpr double kNumberMax = 1e8;
constexpr double kWeightsMax = 1e10;
constexpr int kLayersMax = 10'000;

// One text, taken apart.
struct Layer {
  std::vector<double> numbers;
  std::map<std::string, double> options;
  TensorSpec input;  // with an axis of the batch in front
  ModelOptions model;

  std::int64_t Integer(std::size_t i) const {
    return static_cast<std::int64_t>(numbers[i]);
  }
  std::int64_t Option(const std::string& name, std::int64_t otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise
                                  : static_cast<std::int64_t>(found->second);
  }
  // Channels or features: the last axis.
  std::int64_t width() const { return input.shape[input.shape.rank() - 1]; }
};

// What a name stands for.
struct Kind {
  const char* name;
  const char* usage;
  std::size_t numbers;
  std::vector<std::string> options;
  // How many weights it will have, to be refused before memory is taken.
  double (*weights)(const Layer&);
  ModulePtr (*make)(const Layer&);
  bool fractions = false;  // its numbers may have some, and be 0
};

double NoWeights(const Layer&) { return 0; }

ModulePtr MakeConv(const Layer& layer) {
  const std::int64_t k = layer.Integer(1);
  const std::int64_t stride = layer.Option("stride", 1);
  const std::int64_t pad = layer.Option("pad", 0);
  Conv2d::Options options;
  options.bias = layer.model.bias;
  options.dtype = layer.model.dtype;
  return std::make_unique<Conv2d>(layer.width(), layer.Integer(0),
                                  Window2d{k, k, stride, stride, pad, pad},
                                  options);
}

ModulePtr MakeLinear(const Layer& layer) {
  const Linear::Options options = {layer.model.bias, layer.model.dtype};
  return std::make_unique<Linear>(layer.width(), layer.Integer(0), options);
}

template <typename Pool>
ModulePtr MakePool(const Layer& layer) {
  return std::make_unique<Pool>(layer.Integer(0), layer.Option("stride", 0),
                                layer.Option("pad", 0));
}

template <typename M>
ModulePtr MakePlain(const Layer&) {
  return std::make_unique<M>();
}

const std::vector<Kind>& Kinds() {
  static const auto* const kinds = new std::vector<Kind>{
      {"conv",
       "conv OUT KERNEL [stride=1] [pad=0]",
       2,
       {"stride", "pad"},
       [](const Layer& l) {
         return double(l.width()) * l.numbers[0] * l.numbers[1] * l.numbers[1];
       },
       MakeConv},
      {"linear",
       "linear OUT",
       1,
       {},
       [](const Layer& l) { return double(l.width()) * l.numbers[0]; },
       MakeLinear},
      {"embedding",
       "embedding ROWS WIDTH",
       2,
       {},
       [](const Layer& l) { return l.numbers[0] * l.numbers[1]; },
       [](const Layer& l) -> ModulePtr {
         return std::make_unique<Embedding>(l.Integer(0), l.Integer(1),
                                            l.model.dtype);
       }},
      {"relu", "relu", 0, {}, NoWeights, MakePlain<ReLU>},
      {"flatten", "flatten", 0, {}, NoWeights, MakePlain<Flatten>},
      {"maxpool",
       "maxpool KERNEL [stride=KERNEL] [pad=0]",
       1,
       {"stride", "pad"},
       NoWeights,
       MakePool<MaxPool2d>},
      {"avgpool",
       "avgpool KERNEL [stride=KERNEL] [pad=0]",
       1,
       {"stride", "pad"},
       NoWeights,
       MakePool<AvgPool2d>},
      {"dropout",
       "dropout P",
       1,
       {},
       NoWeights,
       [](const Layer& l) -> ModulePtr {
         return std::make_unique<Dropout>(l.numbers[0]);
       },
       /*fractions=*/true},
  };
  return *kinds;
}

const Kind* FindKind(absl::string_view name) {
  for (const Kind& kind : Kinds()) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

bool IsNumber(const Kind& kind, bool may_be_0, absl::string_view text,
              double& value) {
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > kNumberMax) {
    return false;
  }
  if (kind.fractions) return value < 1;
  return value == std::floor(value) && (may_be_0 || value >= 1);
}

// "maxpool 2": the name, then what belongs to it. Empty: it is understood.
std::string Parse(const Kind& kind, absl::Span<const std::string> words,
                  Layer& layer) {
  for (const std::string& word : words) {
    const std::vector<std::string> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    double value = 0;
    if (!IsNumber(kind, /*may_be_0=*/parts[0] == "pad", parts.back(), value)) {
      return absl::StrCat("\"", word, "\" has no number that it takes");
    }
    if (parts.size() == 1) {
      layer.numbers.push_back(value);
      continue;
    }
    if (!absl::c_linear_search(kind.options, parts[0])) {
      return absl::StrCat("it has no option \"", parts[0], "\"");
    }
    layer.options[parts[0]] = value;
  }
  if (layer.numbers.size() == kind.numbers) return "";
  return absl::StrCat("it takes ", kind.numbers, " numbers, and has ",
                      layer.numbers.size());
}

}  // namespace

std::vector<std::string> LayerUsage() {
  std::vector<std::string> usage;
  for (const Kind& kind : Kinds()) usage.push_back(kind.usage);
  return usage;
}

namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Appends what `text` says; layer.input becomes its output.
absl::Status AppendLayer(const std::string& text, Layer& layer,
                         Sequential& model) {
  const std::vector<std::string> words =
      absl::StrSplit(text, ' ', absl::SkipEmpty());
  const Kind* const kind = words.empty() ? nullptr : FindKind(words[0]);
  if (kind == nullptr) {
    return Wrong(absl::StrCat("there is no such layer; there are ",
                              absl::StrJoin(LayerUsage(), ", ")));
  }
  layer.numbers.clear();
  layer.options.clear();
  const std::string mistake =
      Parse(*kind, absl::MakeConstSpan(words).subspan(1), layer);
  if (!mistake.empty()) {
    return Wrong(absl::StrCat(mistake, "; write ", kind->usage));
  }
  if (kind->weights(layer) > kWeightsMax) {
    return Wrong(absl::StrCat("it has ", kind->weights(layer),
                              " weights, at most ", kWeightsMax));
  }
  ModulePtr made = kind->make(layer);
  ShapeRecord record;
  TROUPE_ASSIGN_OR_RETURN(
      const TensorList output,
      ShapeOnlyForward(*made, {layer.input}, Device{}, record));
  layer.input = {output[0].shape(), output[0].dtype()};
  model.AppendModule(std::move(made));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sequential>> MakeLayers(
    absl::Span<const std::string> layers, const TensorSpec& sample,
    const ModelOptions& options) {
  if (layers.empty() || layers.size() > kLayersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a network has 1 to ", kLayersMax, " layers, not ", layers.size()));
  }
  auto model = std::make_unique<Sequential>();
  std::vector<std::int64_t> dims = {1};
  dims.insert(dims.end(), sample.shape.dims().begin(),
              sample.shape.dims().end());
  Layer layer;
  layer.model = options;
  layer.input = {Shape(dims), sample.dtype};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const absl::Status status = AppendLayer(layers[i], layer, *model);
    if (status.ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat("layer ", i, ", \"", layers[i], "\": ", status.message()));
  }
  return model;
}

}  // namespace troupe::nn
