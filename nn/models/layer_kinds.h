// The kinds of layers that a list of texts may name (layer_list.h), one entry
// each: its syntax, and the function that makes its module.
//
//   const LayerKind* kind = FindLayerKind("maxpool");
//   LayerText layer;
//   layer.numbers = {2};
//   std::unique_ptr<Module> pool = kind->make(layer);
//
// To add a kind, add an entry; errors follow. The help of model.layers
// (tools/trainer/config/model_kinds.cc) repeats the words.

#ifndef NN_MODELS_LAYER_KINDS_H_
#define NN_MODELS_LAYER_KINDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/models/models.h"
#include "nn/modules/module.h"

namespace troupe::nn {

// Range of a layer's number.
enum class LayerNumber {
  kCount,     // 1, 2, ...
  kWhole,     // 0, 1, 2, ...
  kFraction,  // at least 0, less than 1
  kSwitch,    // 0 or 1
};

// One parsed text.
struct LayerText {
  std::vector<double> numbers;
  std::map<std::string, double> options;
  TensorSpec input;  // its shape includes the batch axis
  ModelOptions model;
  bool is_last = false;  // whether no layer follows

  std::int64_t Integer(std::size_t i) const {
    return static_cast<std::int64_t>(numbers[i]);
  }
  double Option(const std::string& name, double otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
  std::int64_t IntegerOption(const std::string& name,
                             std::int64_t otherwise) const {
    return static_cast<std::int64_t>(
        Option(name, static_cast<double>(otherwise)));
  }
  // Returns the channels or features: the last axis.
  std::int64_t width() const { return input.shape[input.shape.rank() - 1]; }
};

struct LayerKind {
  const char* name;
  const char* usage;
  std::vector<LayerNumber> numbers;
  std::map<std::string, LayerNumber> options;
  std::unique_ptr<Module> (*make)(const LayerText&);
  // Returns the number of weights, to refuse a layer before memory is
  // allocated; null: too few to count.
  double (*weights)(const LayerText&) = nullptr;
};

absl::Span<const LayerKind> LayerKinds();

// Returns null if no kind has that name.
const LayerKind* FindLayerKind(absl::string_view name);

}  // namespace troupe::nn

#endif  // NN_MODELS_LAYER_KINDS_H_
