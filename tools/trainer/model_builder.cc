#include "tools/trainer/model_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/models/models.h"

namespace troupe::tools {

data::SampleSpec SampleSpecOf(const data::DatasetOptions& options) {
  if (options.kind == "cifar10") {
    return data::ClassificationSpec({32, 32, 3}, /*num_classes=*/10);
  }
  if (options.kind != "synthetic") {
    return data::ClassificationSpec({28, 28, 1}, /*num_classes=*/10);
  }
  return options.num_classes > 0
             ? data::ClassificationSpec(options.input_shape,
                                        options.num_classes)
             : data::RegressionSpec(options.input_shape, options.target_dim);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config) {
  const data::SampleSpec spec = SampleSpecOf(config.data);
  const std::int64_t outputs =
      spec.is_classification() ? spec.num_classes : spec.target_shape.numel();
  const std::int64_t features = spec.input_shape.numel();
  const nn::ModelOptions& options = config.model.options;
  if (config.model.kind == "lenet") {
    auto model = nn::MakeLeNet(spec.input_shape, outputs, options);
    if (model.ok()) return model;
    return absl::InvalidArgumentError(absl::StrCat(
        "model.kind = \"lenet\" does not take the samples of data.kind = \"",
        config.data.kind, "\": ", model.status().message(),
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

}  // namespace troupe::tools
