// Checks of a whole configuration, before anything is opened or started. Most
// checks are made by the layers that use the values; those here are the
// trainer's own.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/host_port.h"
#include "data/sampler.h"
#include "nn/modules/sequential.h"
#include "pipeline/plan.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/loss_kinds.h"
#include "tools/trainer/config/model_builder.h"
#include "tools/trainer/config/optimizer_kinds.h"
#include "tools/trainer/config/pipeline_options.h"

namespace troupe::tools {
namespace {

// Limit on the weights of one layer. A larger number is a typing error, or
// would need the memory of many machines.
constexpr double kLayerWeightsMax = 1e10;

absl::Status CheckLength(const LoadedConfig& loaded) {
  const actors::JobSpec& job = loaded.config.job;
  if (job.steps != 0 || job.epochs != 0) return absl::OkStatus();
  const char* const advice =
      loaded.file.empty() ? "add one, such as --set train.epochs=5, or a file: "
                            "--config=examples/glyphs/glyphs.toml"
                          : "write one, such as train.epochs = 5";
  return ErrorAt(
      loaded, {},
      absl::StrCat("neither train.steps nor train.epochs is set; ", advice));
}

absl::Status CheckPrecision(const LoadedConfig& loaded) {
  const actors::JobSpec& job = loaded.config.job;
  if (job.dtype != nn::DType::kF64 ||
      job.device.type == nn::DeviceType::kReference) {
    return absl::OkStatus();
  }
  return ErrorAt(loaded, {"train.precision", "train.device"},
                 absl::StrCat("train.precision = \"f64\" is for train.device = "
                              "\"reference:0\", not \"",
                              job.device.ToString(), "\"; set one of them"));
}

// The models take vectors and images.
absl::Status CheckInputShape(const LoadedConfig& loaded) {
  const int axes = loaded.config.data.input_shape.rank();
  if (axes == 1 || axes == 3) return absl::OkStatus();
  return ErrorAt(
      loaded, {"data.input_shape"},
      absl::StrCat("data.input_shape has ", axes,
                   " numbers; give one (length) or three (height, width, "
                   "channels)"));
}

// Checks the number of weights of each layer before a layer is made.
absl::Status CheckWidths(const LoadedConfig& loaded,
                         const data::SampleSpec& sample) {
  const TrainerConfig& config = loaded.config;
  const bool is_flat =
      config.model.layers.empty() &&
      (config.model.kind == "mlp" || config.model.kind == "linear");
  if (!is_flat) return absl::OkStatus();
  std::vector<std::int64_t> widths = {sample.input_shape.numel()};
  if (config.model.kind == "mlp") {
    widths.insert(widths.end(), config.model.widths.begin(),
                  config.model.widths.end());
  }
  widths.push_back(config.model.num_classes > 0 ? config.model.num_classes
                   : sample.is_classification() ? sample.num_classes
                                                : sample.target_shape.numel());
  for (std::size_t i = 1; i < widths.size(); ++i) {
    // A product of two doubles cannot overflow here.
    const double weights = double(widths[i - 1]) * double(widths[i]);
    if (weights <= kLayerWeightsMax) continue;
    return ErrorAt(
        loaded,
        {"model.widths", "data.input_shape", "data.num_classes",
         "data.target_dim"},
        absl::StrCat("a layer from ", widths[i - 1], " to ", widths[i], " has ",
                     weights, " weights, at most ", kLayerWeightsMax,
                     "; make model.widths or the samples smaller"));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const LoadedConfig& loaded,
                        const data::SampleSpec& sample) {
  if (loaded.IsSet("model.layers") && loaded.IsSet("model.kind") &&
      !loaded.config.model.layers.empty()) {
    return ErrorAt(loaded, {"model.layers"},
                   "model.layers and model.kind are both set, and each is a "
                   "network; leave one out");
  }
  const absl::Status status = CheckModelFits(loaded.config, sample);
  if (status.ok()) return absl::OkStatus();
  std::vector<std::string> keys = {"model.layers", "model.kind", "data.kind",
                                   "data.input_shape"};
  // Errors on these keys begin with the key.
  for (const char* key :
       {"model.num_classes", "model.vocab_size", "model.freeze"}) {
    if (absl::StartsWith(status.message(), key)) keys = {key};
  }
  if (absl::StartsWith(status.message(), "model.recompute")) {
    keys = {"model.recompute", "model.recompute_budget"};
  }
  return ErrorAt(loaded, keys, status.message());
}

// Checks that an epoch has a whole step, if the number of samples is known.
absl::Status CheckEpoch(const TrainerConfig& config) {
  if (config.data.train_count == 0) return absl::OkStatus();
  data::SamplerOptions sampler;
  sampler.dataset_size = config.data.train_count;
  sampler.global_batch_size = config.job.plan.global_batch_size;
  sampler.drop_last = config.job.drop_last;
  return sampler.Validate();
}

// Makes the plan from shapes only, as the job will. This checks sizes, cuts and
// the shapes of every layer.
absl::Status CheckPlan(const LoadedConfig& loaded,
                       const data::SampleSpec& sample) {
  const TrainerConfig& config = loaded.config;
  TROUPE_ASSIGN_OR_RETURN(pipeline::PlanOptions options,
                          PipelineOptions(loaded, sample));
  // It applies to those of the compared meshes that have ranks along tp.
  if (config.pipeline.auto_mesh && options.mesh.tp() == 1) {
    options.sequence_parallel = false;
  }
  const absl::Status status =
      pipeline::MakePlan(
          options, [&] { return MakeModel(config, sample).value(); },
          sample.input_shape, InputDType(config, sample), config.job.device)
          .status();
  const absl::Status at_keys = AtKeys(loaded, status);
  // An error on the number of cuts also names the layers that can be cut at.
  const std::vector<std::string> of_count = {
      base::FieldName<&pipeline::PlanOptions::cuts>(),
      pipeline::AxisFieldName("pp")};
  if (base::FieldsOf(status) != of_count) return at_keys;
  const int layers = MakeModel(config, sample).value()->size();
  return base::WithMessage(
      at_keys,
      absl::StrCat(at_keys.message(), ", from layers 1 to ", layers - 1));
}

// Checks that nothing is set that only one mesh can have.
absl::Status CheckAutoMesh(const LoadedConfig& loaded) {
  if (!loaded.config.pipeline.auto_mesh) return absl::OkStatus();
  for (const char* key : {"mesh.cuts", "mesh.schedule_file"}) {
    if (!loaded.IsSet(key)) continue;
    return ErrorAt(loaded, {key, "mesh.auto"},
                   absl::StrCat(key,
                                " is for one mesh, and mesh.auto compares "
                                "several; remove one of them"));
  }
  return absl::OkStatus();
}

absl::Status CheckFolders(const LoadedConfig& loaded) {
  const actors::CheckpointOptions& checkpoint = loaded.config.job.checkpoint;
  const bool replace = loaded.config.replace_checkpoints;
  if (checkpoint.dir.empty()) {
    const char* needs = checkpoint.resume      ? "checkpoint.resume"
                        : checkpoint.every > 0 ? "checkpoint.every"
                        : checkpoint.keep_best ? "checkpoint.keep_best"
                        : replace              ? "checkpoint.replace"
                                               : nullptr;
    if (needs == nullptr) return absl::OkStatus();
    return ErrorAt(loaded, {needs},
                   absl::StrCat(needs,
                                " is set but checkpoint.dir is not; write "
                                "checkpoint.dir = \"checkpoints\", say"));
  }
  if (!checkpoint.resume || !replace) return absl::OkStatus();
  // --resume may override a file that does not resume.
  if (loaded.Where("checkpoint.resume") == "--resume") return absl::OkStatus();
  return ErrorAt(
      loaded, {"checkpoint.replace", "checkpoint.resume"},
      "checkpoint.replace and checkpoint.resume are both true; set one to "
      "false");
}

// Checks that metrics are served to other machines only if the user permits it.
absl::Status CheckMetrics(const LoadedConfig& loaded) {
  const MetricsConfig& metrics = loaded.config.metrics;
  if (metrics.prometheus.empty()) return absl::OkStatus();
  const absl::StatusOr<base::HostPort> address =
      base::ParseHostPort(metrics.prometheus);
  if (!address.ok()) {
    return ErrorAt(
        loaded, {"metrics.prometheus"},
        absl::StrCat("metrics.prometheus: ", address.status().message()));
  }
  if (metrics.prometheus_expose || base::IsLoopbackHost(address->host)) {
    return absl::OkStatus();
  }
  return ErrorAt(
      loaded, {"metrics.prometheus"},
      absl::StrCat("metrics.prometheus = \"", metrics.prometheus,
                   "\" can be reached from other machines, unencrypted and "
                   "without a password; write \"127.0.0.1:",
                   address->port,
                   "\", or set metrics.prometheus_expose = true"));
}

}  // namespace

absl::Status CheckSamples(const LoadedConfig& loaded,
                          const data::SampleSpec& sample) {
  TROUPE_RETURN_IF_ERROR(CheckWidths(loaded, sample));
  TROUPE_RETURN_IF_ERROR(CheckModel(loaded, sample));
  TROUPE_RETURN_IF_ERROR(CheckLoss(loaded, sample));
  return CheckPlan(loaded, sample);
}

absl::Status CheckConfig(const LoadedConfig& loaded) {
  const TrainerConfig& config = loaded.config;
  TROUPE_RETURN_IF_ERROR(CheckLength(loaded));
  TROUPE_RETURN_IF_ERROR(CheckPrecision(loaded));
  TROUPE_RETURN_IF_ERROR(CheckAutoMesh(loaded));
  TROUPE_RETURN_IF_ERROR(AtKeys(loaded, actors::CheckNumbers(config.job)));
  TROUPE_RETURN_IF_ERROR(AtKeys(loaded, config.data.Validate()));
  TROUPE_RETURN_IF_ERROR(CheckInputShape(loaded));
  TROUPE_RETURN_IF_ERROR(CheckOptimizer(loaded));
  if (const auto sample = data::KnownSampleSpec(config.data)) {
    TROUPE_RETURN_IF_ERROR(CheckSamples(loaded, *sample));
  }
  TROUPE_RETURN_IF_ERROR(AtKeys(loaded, CheckEpoch(config)));
  TROUPE_RETURN_IF_ERROR(CheckMetrics(loaded));
  return CheckFolders(loaded);
}

}  // namespace troupe::tools
