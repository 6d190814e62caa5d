#include "tools/trainer/run/spec_builder.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "actors/planning/measure_costs.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "data/description/describe_data.h"
#include "data/sampler.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/loss_kinds.h"
#include "tools/trainer/config/model_builder.h"
#include "tools/trainer/config/optimizer_kinds.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/config/precision.h"
#include "tools/trainer/config/weight_advice.h"
#include "tools/trainer/run/mesh_choices.h"

namespace troupe::tools {
namespace {

// Sets all fields that depend on the precision.
void SetModel(const TrainerConfig& config, const data::SampleSpec& sample,
              actors::JobSpec& spec) {
  spec.dtype = config.job.dtype;
  spec.loss_scale = config.job.loss_scale;
  // Cannot fail: CheckSamples() made the same model before.
  spec.model = [config, sample] { return MakeModel(config, sample).value(); };
  if (spec.train == nullptr) return;
  spec.dynamic_loss_scale = config.job.dynamic_loss_scale;
  spec.optimizer = OptimizerOf(config);
}

// Keys that may differ from the checkpoint's without a word: a resumed run does
// not read the file of first weights, and recomputing changes no bit.
bool IsIrrelevant(absl::string_view key) {
  return absl::StartsWith(key, "model.init_") ||
         absl::StartsWith(key, "model.recompute");
}

// Describes how the model is made and trained, as the keys say.
void Describe(const TrainerConfig& config, actors::JobSpec& spec) {
  for (const ConfigKey& key : ConfigKeys()) {
    const absl::string_view section = key.section();
    if (section == "optimizer" && spec.train == nullptr) continue;
    if ((section != "model" && section != "loss" && section != "optimizer") ||
        IsIrrelevant(key.name)) {
      continue;
    }
    spec.settings[key.name] = FormatValue(key, config);
  }
  spec.fixed_settings = {"model.kind", "model.layers", "model.heads",
                         "model.stem", "loss.kind",    "optimizer.kind"};
}

// Returns the number of the run's steps.
absl::StatusOr<std::int64_t> StepsOf(const LoadedConfig& loaded,
                                     const data::DataSplits& splits) {
  const actors::JobSpec& job = loaded.config.job;
  data::SamplerOptions of_samples;
  of_samples.dataset_size = splits.train->size();
  of_samples.global_batch_size = job.plan.global_batch_size;
  of_samples.drop_last = job.drop_last;
  const absl::StatusOr<data::Sampler> sampler =
      data::Sampler::Create(of_samples);
  if (!sampler.ok()) return AtKeys(loaded, sampler.status());
  return job.epochs > 0 ? sampler->BatchesUntil(job.epochs) : job.steps;
}

}  // namespace

absl::StatusOr<data::DataSplits> OpenData(const LoadedConfig& loaded,
                                          base::FileSystem& files,
                                          const NoteFn& note) {
  data::DatasetOptions options = loaded.config.data;
  options.files = &files;
  absl::StatusOr<data::DataSplits> splits = data::OpenDataset(options);
  if (!splits.ok()) return AtKeys(loaded, splits.status());
  for (const std::string& line : splits->notes) note(line);
  return splits;
}

absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          base::FileSystem& files) {
  actors::JobSpec spec = loaded.config.job;
  if (splits.train == nullptr) spec.dynamic_loss_scale.reset();
  LoadedConfig spanned = loaded;
  if (splits.train != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t steps, StepsOf(loaded, splits));
    SpanSchedule(steps, spanned.config);
    TROUPE_RETURN_IF_ERROR(CheckOptimizer(spanned));
  }
  const TrainerConfig& config = spanned.config;
  spec.train = splits.train;
  spec.test = splits.test;
  const data::SampleSpec& sample = actors::SamplesOf(spec)->spec();
  if (!data::KnownSampleSpec(config.data)) {
    TROUPE_RETURN_IF_ERROR(CheckSamples(loaded, sample));
  }
  TROUPE_ASSIGN_OR_RETURN(spec.plan, PipelineOptions(loaded, sample));
  if (IsPipelineOpen(config)) {
    spec.open_pipeline = OpenPipelineOf(loaded, sample);
    spec.open_pipeline->measure = actors::MeasureCosts;
  }
  SetModel(config, sample, spec);
  if (config.pipeline.auto_mesh && spec.train != nullptr) {
    spec.open_mesh = OpenMeshOf(loaded, splits, files);
  }
  if (IsPrecisionOpen(config)) {
    spec.open_dtype.emplace();
    spec.open_dtype->set = [config, sample](nn::DType dtype,
                                            actors::JobSpec& closed) {
      TrainerConfig chosen = config;
      SetPrecision(dtype, chosen);
      SetModel(chosen, sample, closed);
    };
    spec.open_dtype->measure = actors::MeasureStepSeconds;
  }
  spec.loss = LossOf(config.loss, sample.is_classification());
  spec.loss_reduction = ReductionOf(config.loss);
  spec.count_targets = TargetCounterOf(config.loss);
  spec.init.advise = [config, sample](const nn::WeightDifferences& found) {
    return WeightAdvice(config, sample, found);
  };
  spec.sample_weights = splits.weights;
  spec.data = data::DescribeData(config.data, splits);
  Describe(config, spec);
  spec.eval_each_epoch = spec.eval_every == 0;
  spec.checkpoint.files = &files;
  return spec;
}

}  // namespace troupe::tools
