#include "tools/trainer/saved_run.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/load_model.h"
#include "actors/checkpoint/plan_file.h"
#include "base/check.h"
#include "tools/trainer/config/precision.h"
#include "tools/trainer/model_builder.h"

namespace troupe::tools {

void DeclareSavedRun(OptionsReader& reader, const std::string& name,
                     SavedRun& run) {
  reader.Text(absl::StrCat("--checkpoint=checkpoints/", name), &run.checkpoint);
  reader.Text(absl::StrCat("--config=", name, ".toml"), &run.config);
  reader.Texts("--set=data.path=FILE", &run.sets);
}

absl::Status CheckSavedRun(const SavedRun& run, const std::string& name) {
  if (!run.checkpoint.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "no checkpoint is given; write --checkpoint=checkpoints/", name));
}

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

absl::StatusOr<std::unique_ptr<nn::Sequential>> LoadSavedModel(
    const TrainerConfig& config, const data::SampleSpec& sample,
    const actors::Checkpoint& checkpoint, nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
                          MakeModel(config, sample));
  TROUPE_RETURN_IF_ERROR(actors::LoadModel(checkpoint, *model, kernels));
  return model;
}

}  // namespace troupe::tools
