#include "nn/models/layer_list.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/models/layer_kinds.h"

namespace troupe::nn {
namespace {

// Limits on one number of a layer, and on the weights of a layer, to catch
// typing errors.
constexpr double kNumberMax = 1e8;
constexpr double kWeightsMax = 1e10;
constexpr int kLayersMax = 10'000;

bool IsNumber(LayerNumber wanted, absl::string_view text, double& value) {
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > kNumberMax) {
    return false;
  }
  const bool is_whole = value == std::floor(value);
  switch (wanted) {
    case LayerNumber::kCount:
      return is_whole && value >= 1;
    case LayerNumber::kWhole:
      return is_whole;
    case LayerNumber::kFraction:
      return value < 1;
    case LayerNumber::kSwitch:
      return value == 0 || value == 1;
  }
  return false;
}

// Parses the words after a layer's name. Returns an error in words, or empty.
std::string Parse(const LayerKind& kind, absl::Span<const std::string> words,
                  LayerText& layer) {
  const std::size_t numbers = absl::c_count_if(
      words,
      [](const std::string& word) { return !absl::StrContains(word, '='); });
  if (numbers != kind.numbers.size()) {
    return absl::StrCat("it takes ", kind.numbers.size(), " numbers, and has ",
                        numbers);
  }
  for (const std::string& word : words) {
    const std::vector<std::string> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const bool is_option = parts.size() == 2;
    const auto option = kind.options.find(parts[0]);
    if (is_option && option == kind.options.end()) {
      return absl::StrCat("it has no option \"", parts[0], "\"");
    }
    double value = 0;
    if (!IsNumber(
            is_option ? option->second : kind.numbers[layer.numbers.size()],
            parts.back(), value)) {
      return absl::StrCat("\"", word, "\" has no number that it takes");
    }
    if (is_option) {
      layer.options[parts[0]] = value;
    } else {
      layer.numbers.push_back(value);
    }
  }
  return "";
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Appends the layer of `text`; layer.input becomes its output, and `stashed`
// the tensors that later layers may pop.
absl::Status AppendLayer(const std::string& text, LayerText& layer,
                         StashedTensors& stashed, Sequential& model) {
  const std::vector<std::string> words =
      absl::StrSplit(text, ' ', absl::SkipEmpty());
  const LayerKind* const kind =
      words.empty() ? nullptr : FindLayerKind(words[0]);
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
  const double weights = kind->weights ? kind->weights(layer) : 0;
  if (weights > kWeightsMax) {
    return Wrong(absl::StrCat("it has ", weights, " weights; the limit is ",
                              kWeightsMax));
  }
  std::unique_ptr<Module> made = kind->make(layer);
  ShapeRecord record;
  TROUPE_ASSIGN_OR_RETURN(
      const TensorList output,
      ShapeOnlyForward(*made, {layer.input}, stashed, Device{}, record));
  layer.input = {output[0].shape(), output[0].dtype()};
  model.AppendModule(std::move(made));
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> LayerUsage() {
  std::vector<std::string> usage;
  for (const LayerKind& kind : LayerKinds()) usage.push_back(kind.usage);
  return usage;
}

absl::StatusOr<std::unique_ptr<Sequential>> MakeLayers(
    absl::Span<const std::string> layers, const TensorSpec& sample,
    const ModelOptions& options) {
  if (layers.empty() || layers.size() > kLayersMax) {
    return absl::InvalidArgumentError(absl::StrCat("a network must have 1 to ",
                                                   kLayersMax, " layers, not ",
                                                   layers.size()));
  }
  auto model = std::make_unique<Sequential>();
  std::vector<std::int64_t> dims = {1};
  dims.insert(dims.end(), sample.shape.dims().begin(),
              sample.shape.dims().end());
  LayerText layer;
  layer.model = options;
  layer.input = {Shape(dims), sample.dtype};
  StashedTensors stashed;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layer.is_last = i + 1 == layers.size();
    const absl::Status status = AppendLayer(layers[i], layer, stashed, *model);
    if (status.ok()) continue;
    return base::WithMessage(
        status,
        absl::StrCat("layer ", i, ", \"", layers[i], "\": ", status.message()));
  }
  TROUPE_RETURN_IF_ERROR(stashed.CheckAllTaken());
  return model;
}

}  // namespace troupe::nn
