#include "tools/trainer/commands/evaluate_command.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/load_model.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/registry.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {
namespace {

// A job that has done all of its steps evaluates, and ends.
void StopAt(const actors::Checkpoint& checkpoint, actors::JobSpec& job) {
  job.epochs = 0;
  job.steps = checkpoint.state().step;
  job.seed = checkpoint.state().seed;
  job.early_stop_patience = 0;
  job.checkpoint = actors::CheckpointOptions();
  job.checkpoint.from = checkpoint.path();
}

}  // namespace

absl::Status EvaluateCheckpoint(LoadedConfig loaded, const std::string& path,
                                base::FileSystem& files, Display& display) {
  TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint checkpoint,
                          actors::OpenCheckpoint(files, path));
  TrainerConfig& config = loaded.config;
  StopAt(checkpoint, config.job);
  config.data.files = &files;
  const absl::StatusOr<data::DataSplits> splits =
      data::OpenDataset(config.data);
  if (!splits.ok()) return AtKeys(loaded, splits.status());
  if (splits->test == nullptr) {
    return ErrorAt(loaded, {"data.path", "data.kind"},
                   "the data have no test samples to evaluate");
  }
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                          BuildSpec(loaded, *splits, files));
  const absl::StatusOr<actors::JobResult> result = actors::RunJob(spec);
  if (!result.ok()) return AtKeys(loaded, result.status());
  const actors::EvaluationReport& evaluation = result->evaluation;
  std::optional<double> accuracy;
  if (splits->test->spec().is_classification()) accuracy = evaluation.accuracy;
  display.Print(absl::StrCat(checkpoint.path(), " ",
                             FormatEvaluation(evaluation.step, evaluation.loss,
                                              accuracy, evaluation.count)));
  return absl::OkStatus();
}

}  // namespace troupe::tools
