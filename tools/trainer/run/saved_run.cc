#include "tools/trainer/run/saved_run.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "actors/checkpoint/load_model.h"
#include "actors/checkpoint/plan_file.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/description/class_names.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/config/precision.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {
namespace {

// Sets a precision that the configuration leaves open to the checkpoint's.
absl::Status TakePrecision(const actors::Checkpoint& checkpoint,
                           base::FileSystem& files, TrainerConfig& config) {
  if (!IsPrecisionOpen(config)) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::optional<pipeline::Plan> plan,
                          actors::ReadPlanFile(files, checkpoint.path()));
  if (!plan) {
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint.path(),
        " has no plan.json to say in which precision it was trained; set "
        "train.precision"));
  }
  SetPrecision(plan->data_dtype, config);
  return absl::OkStatus();
}

// Adds to the error of a checkpoint of another model what the model follows
// from: the sizes of the first and the last layer are those of the data.
absl::Status WithKeysOfModel(const LoadedConfig& loaded,
                             const absl::Status& status) {
  const std::string field = base::FieldName<&actors::JobSpec::model>();
  if (!absl::c_linear_search(base::FieldsOf(status), field)) return status;
  std::vector<std::string> values;
  for (const absl::string_view name :
       {"model.kind", "data.kind", "data.path", "data.tokenizer"}) {
    values.push_back(
        absl::StrCat(name, " = ", FormatValue(*FindKey(name), loaded.config)));
  }
  return base::WithMessage(status,
                           absl::StrCat(status.message(),
                                        "; model and data must be those of "
                                        "the run that wrote it, and here ",
                                        absl::StrJoin(values, ", ")));
}

// Checks that class numbers stand for the classes of the run.
absl::Status CheckClasses(const OpenedRun& run,
                          const data::DataSplits& splits) {
  const auto& saved = run.checkpoint.state().sampler.data;
  const auto classes = saved.find(data::kClassesEntry);
  if (classes == saved.end() || splits.classes.empty()) {
    return absl::OkStatus();
  }
  const absl::Status status =
      data::CompareClasses(classes->second, data::ClassNames(splits.classes));
  if (status.ok()) return status;
  return ErrorAt(run.loaded, {"data.path"},
                 absl::StrCat(run.checkpoint.path(), ": ", status.message()));
}

}  // namespace

void DeclareSavedRun(OptionsReader& reader, const std::string& name,
                     SavedRun& run) {
  reader.Path(absl::StrCat("--checkpoint=checkpoints/", name), &run.checkpoint);
  reader.Path(absl::StrCat("--config=", name, ".toml"), &run.config);
  reader.Texts("--set=data.path=FILE", &run.sets);
}

absl::Status CheckSavedRun(const SavedRun& run, const std::string& name) {
  if (!run.checkpoint.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "no checkpoint is given; write --checkpoint=checkpoints/", name));
}

absl::StatusOr<OpenedRun> OpenRun(const LoadedConfig& loaded,
                                  const SavedRun& run,
                                  base::FileSystem& files) {
  TROUPE_ASSIGN_OR_RETURN(actors::Checkpoint checkpoint,
                          actors::OpenCheckpoint(files, run.checkpoint));
  OpenedRun opened{std::move(checkpoint), loaded};
  TROUPE_RETURN_IF_ERROR(
      TakePrecision(opened.checkpoint, files, opened.loaded.config));
  return opened;
}

absl::Status CheckVocabulary(const OpenedRun& run,
                             const data::Tokenizer& tokenizer) {
  const auto& saved = run.checkpoint.state().sampler.data;
  const auto vocabulary = saved.find("vocabulary");
  if (vocabulary == saved.end() ||
      vocabulary->second == data::VocabularyHash(tokenizer)) {
    return absl::OkStatus();
  }
  const auto name = saved.find("tokenizer");
  const std::string was = name == saved.end() ? "" : name->second;
  return ErrorAt(
      run.loaded, {"data.tokenizer_path", "data.tokenizer", "data.path"},
      absl::StrCat(run.checkpoint.path(), " was trained on tokens of ",
                   was.empty() || was == tokenizer.name()
                       ? absl::StrCat("another tokenizer \"", tokenizer.name(),
                                      "\" than this one")
                       : absl::StrCat("the tokenizer \"", was, "\", not \"",
                                      tokenizer.name(), "\""),
                   ": the same numbers stand for other texts; give the data "
                   "and the tokenizer of that run"));
}

absl::StatusOr<std::unique_ptr<actors::InferenceSession>> OpenSavedModel(
    OpenedRun run, const data::DataSplits& splits, base::FileSystem& files,
    int threads) {
  TROUPE_RETURN_IF_ERROR(CheckClasses(run, splits));
  // The order of backwards does not matter here, and searching takes time.
  PipelineConfig& pipeline = run.loaded.config.pipeline;
  if (pipeline.schedule == kSearchSchedule) pipeline.schedule = kAutoSchedule;
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          BuildSpec(run.loaded, splits, files));
  // The host computes, in kernels that have the model's dtype: only the
  // reference kernels have f64.
  if (spec.device.type != nn::DeviceType::kReference) {
    spec.device = nn::Device();
  }
  spec.plan.threads_per_rank = threads;
  auto session =
      actors::InferenceSession::Open(spec, std::move(run.checkpoint));
  if (!session.ok()) {
    return AtKeys(run.loaded, WithKeysOfModel(run.loaded, session.status()));
  }
  return session;
}

}  // namespace troupe::tools
