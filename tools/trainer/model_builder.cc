#include "tools/trainer/model_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/models/models.h"

namespace troupe::tools {

data::SampleSpec SampleSpecOf(const DataConfig& config) {
  if (config.kind == "cifar10") {
    return data::ClassificationSpec({32, 32, 3}, /*num_classes=*/10);
  }
  if (config.kind != "synthetic") {
    return data::ClassificationSpec({28, 28, 1}, /*num_classes=*/10);
  }
  const nn::Shape input(config.input_shape);
  return config.num_classes > 0
             ? data::ClassificationSpec(input, config.num_classes)
             : data::RegressionSpec(input, config.target_dim);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config) {
  const data::SampleSpec spec = SampleSpecOf(config.data);
  const std::int64_t outputs =
      spec.is_classification() ? spec.num_classes : spec.target_shape.numel();
  const std::int64_t features = spec.input_shape.numel();
  nn::ModelOptions options;
  options.bias = config.model.bias;
  if (config.model.kind == "lenet") {
    auto model = nn::MakeLeNet(spec.input_shape, outputs, options);
    if (model.ok()) return model;
    return absl::InvalidArgumentError(absl::StrCat(
        "model.kind = \"lenet\" takes images of at least 16x16, samples of "
        "data.kind = \"",
        config.data.kind, "\" are ", spec.input_shape.ToString(),
        "; use model.kind = \"mlp\""));
  }
  if (config.model.kind == "linear") {
    return nn::MakeLinearModel(features, outputs, options);
  }
  std::vector<std::int64_t> widths = {features};
  widths.insert(widths.end(), config.model.widths.begin(),
                config.model.widths.end());
  widths.push_back(outputs);
  return nn::MakeMlp(widths, options);
}

data::DatasetOptions DatasetOptionsOf(const DataConfig& config) {
  data::DatasetOptions options;
  options.kind = config.kind;
  options.path = config.path;
  options.train_count = config.train_count;
  options.test_count = config.test_count;
  options.seed = static_cast<std::uint64_t>(config.seed);
  options.normalize = config.normalize;
  options.augment = config.augment;
  options.input_shape = nn::Shape(config.input_shape);
  options.num_classes = config.num_classes;
  options.target_dim = config.target_dim;
  return options;
}

nn::SgdOptions SgdOptionsOf(const OptimizerConfig& config) {
  nn::SgdOptions options;
  options.lr = config.lr;
  options.momentum = config.momentum;
  options.dampening = config.dampening;
  options.weight_decay = config.weight_decay;
  options.nesterov = config.nesterov;
  return options;
}

}  // namespace troupe::tools
