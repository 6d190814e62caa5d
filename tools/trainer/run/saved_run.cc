#include "tools/trainer/run/saved_run.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/plan_file.h"
#include "base/check.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/config/precision.h"
#include "tools/trainer/run/spec_builder.h"

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

absl::StatusOr<std::unique_ptr<actors::InferenceSession>> OpenSavedModel(
    const LoadedConfig& loaded, const data::DataSplits& splits,
    actors::Checkpoint checkpoint, base::FileSystem& files, int threads) {
  LoadedConfig own = loaded;
  // An order of backwards is of no use here, and a search for one takes time.
  PipelineConfig& pipeline = own.config.pipeline;
  if (pipeline.schedule == kSearchSchedule) pipeline.schedule = kAutoSchedule;
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec, BuildSpec(own, splits, files));
  spec.device = nn::Device();
  spec.plan.threads_per_rank = threads;
  auto session = actors::InferenceSession::Open(spec, std::move(checkpoint));
  if (!session.ok()) return AtKeys(loaded, session.status());
  return session;
}

}  // namespace troupe::tools
