#include "tools/trainer/config/model_builder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/models/layer_list.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/freeze.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/modules/recompute.h"
#include "tools/trainer/config/model_kinds.h"

namespace troupe::tools {
namespace {

// Limit on the elements of one parameter. A larger number is a typing error, or
// would need the memory of many machines.
constexpr std::int64_t kParameterElemsMax = 10'000'000'000;

// Returns the shape of the model's output for a batch of one.
nn::Shape OutputShape(const data::SampleSpec& spec, std::int64_t outputs) {
  if (!spec.is_classification()) return {1, outputs};
  std::vector<std::int64_t> dims = {1};
  dims.insert(dims.end(), spec.target_shape.dims().begin(),
              spec.target_shape.dims().end());
  dims.push_back(outputs);
  return nn::Shape(dims);
}

std::string DataWords(const TrainerConfig& config,
                      const data::SampleSpec& spec) {
  return absl::StrCat("data.kind = \"", config.data.kind,
                      "\", whose samples are ", spec.ToString());
}

absl::Status Refuse(const TrainerConfig& config, const data::SampleSpec& spec,
                    const absl::Status& why) {
  const ModelConfig& model = config.model;
  const bool is_kind = model.layers.empty();
  return absl::InvalidArgumentError(
      absl::StrCat(is_kind ? absl::StrCat("model.kind = \"", model.kind, "\"")
                           : "model.layers",
                   " does not take the samples of ", DataWords(config, spec),
                   ": ", why.message()));
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeLayersOrKind(
    const ModelConfig& config, const data::SampleSpec& spec,
    std::int64_t outputs) {
  if (config.layers.empty()) return MakeModelOfKind(config, spec, outputs);
  return nn::MakeLayers(config.layers, {spec.input_shape, spec.input_dtype},
                        config.options);
}

absl::Status ChooseRecomputed(nn::Module& model, const TrainerConfig& config,
                              const data::SampleSpec& spec) {
  nn::RecomputeOptions options;
  options.modules = config.model.recompute;
  options.every = config.model.recompute_every;
  if (config.model.recompute_budget_bytes > 0) {
    options.budget_bytes =
        static_cast<double>(config.model.recompute_budget_bytes);
  }
  const std::int64_t micro_batch = config.job.plan.MicroBatchSize();
  return nn::ApplyRecompute(
      model, options, {spec.InputShape(micro_batch), InputDType(config, spec)},
      nn::Device{});
}

// Freezes parameters, of which some must be left to train.
absl::Status Freeze(nn::Module& model,
                    const std::vector<std::string>& patterns) {
  TROUPE_RETURN_IF_ERROR(nn::FreezeParameters(model, patterns));
  const std::vector<nn::Parameter*> parameters = model.Parameters();
  const auto trains = [](const nn::Parameter* p) { return p->requires_grad; };
  if (patterns.empty() ||
      std::any_of(parameters.begin(), parameters.end(), trains)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("all ", parameters.size(),
                   " parameters are frozen, and nothing is left to train; "
                   "leave some out, such as those of the last layer"));
}

}  // namespace

absl::StatusOr<std::int64_t> CountOutputs(const TrainerConfig& config,
                                          const data::SampleSpec& spec) {
  const bool is_text = !nn::IsFloating(spec.input_dtype);
  const std::int64_t needed =
      spec.is_classification() ? spec.num_classes : spec.target_shape.numel();
  const std::int64_t chosen =
      is_text ? config.model.vocab_size : config.model.num_classes;
  if (chosen == 0 || chosen == needed) return needed;
  if (chosen > needed && spec.is_classification()) return chosen;
  return absl::InvalidArgumentError(absl::StrCat(
      is_text ? "model.vocab_size = " : "model.num_classes = ", chosen,
      ", but the targets of ", DataWords(config, spec), " need ", needed,
      "; set it to that, or remove it"));
}

nn::DType InputDType(const TrainerConfig& config,
                     const data::SampleSpec& sample) {
  return nn::IsFloating(sample.input_dtype) ? config.job.dtype
                                            : sample.input_dtype;
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config, const data::SampleSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t outputs,
                          CountOutputs(config, spec));
  auto model = MakeLayersOrKind(config.model, spec, outputs);
  if (!model.ok()) return Refuse(config, spec, model.status());
  nn::SetParameterDType(**model, config.job.dtype);
  if (config.model.sync_batch_norm) nn::SynchroniseBatchNorms(**model);
  const absl::Status frozen = Freeze(**model, config.model.freeze);
  if (!frozen.ok()) {
    return base::WithMessage(frozen,
                             absl::StrCat("model.freeze: ", frozen.message()));
  }
  const absl::Status chosen = ChooseRecomputed(**model, config, spec);
  if (chosen.ok()) return model;
  return base::WithMessage(chosen,
                           absl::StrCat("model.recompute: ", chosen.message()));
}

absl::StatusOr<nn::ModelSummary> SummaryOf(const TrainerConfig& config,
                                           const data::SampleSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const auto model, MakeModel(config, spec));
  return nn::Summary(*model, {spec.InputShape(1), InputDType(config, spec)});
}

absl::Status CheckModelFits(const TrainerConfig& config,
                            const data::SampleSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t outputs,
                          CountOutputs(config, spec));
  TROUPE_ASSIGN_OR_RETURN(const auto model, MakeModel(config, spec));
  for (const nn::Parameter* p : model->Parameters()) {
    if (p->shape.numel() <= kParameterElemsMax) continue;
    return Refuse(
        config, spec,
        absl::InvalidArgumentError(absl::StrCat(
            p->name, " is ", p->shape.ToString(), ", more than ",
            kParameterElemsMax, " elements; make it or the samples smaller")));
  }
  nn::ShapeRecord record;
  const absl::StatusOr<nn::TensorList> output = nn::ShapeOnlyForward(
      *model, {{spec.InputShape(1), InputDType(config, spec)}}, nn::Device{},
      record);
  if (!output.ok()) return Refuse(config, spec, output.status());
  const nn::Shape& given = (*output)[0].shape();
  const nn::Shape wanted = OutputShape(spec, outputs);
  if (given == wanted) return absl::OkStatus();
  return Refuse(config, spec,
                absl::InvalidArgumentError(absl::StrCat(
                    "of a batch of one it makes ", given.ToString(),
                    "; add layers that make ", wanted.ToString(), " of it")));
}

}  // namespace troupe::tools
