#include "tools/trainer/commands/evaluate_command.h"

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/load_model.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/description/compare_data.h"
#include "data/registry.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"
#include "tools/trainer/terminal/summary.h"

namespace troupe::tools {
namespace {

constexpr char kEvaluateHelp[] =
    R"(trainer evaluate --checkpoint=DIR [--config=FILE] [options]

Prints loss and accuracy of a checkpoint on the test samples. Nothing is trained
and nothing written. The configuration is that of the run that wrote it: model and
data must be the same; seed and step are the checkpoint's, and no optimizer is needed.
The training samples need not be there, unless the test samples are cut from them
(data.val_fraction, data.validation_share).

Options:
  --checkpoint=DIR         A checkpoint ("checkpoints/glyphs/step-00001024"), or
                           a folder of them, of which the newest is taken. The
                           best is in its folder "best", if the run keeps it
                           (checkpoint.keep_best).
  --config=FILE            As of trainer train; so are the next two.
  --set section.key=value
  --ranks=N
  --help                   This text.

For example:

  trainer evaluate --config=examples/glyphs/glyphs.toml \
      --checkpoint=checkpoints/glyphs
)";

// Makes the run of `config` evaluate the checkpoint and end.
void OnlyEvaluate(const actors::Checkpoint& checkpoint, TrainerConfig& config) {
  actors::JobSpec& job = config.job;
  job.epochs = 0;
  job.steps = 0;
  job.early_stop_patience = 0;
  const bool allow_changed = job.checkpoint.allow_changed;
  job.checkpoint = actors::CheckpointOptions();
  job.checkpoint.allow_changed = allow_changed;
  job.checkpoint.from = checkpoint.path();
  const auto& data = checkpoint.state().sampler.data;
  const auto content = data.find(data::kContentEntry);
  config.data.part.trained_on = content == data.end() ? "" : content->second;
}

int RunEvaluate(const std::vector<std::string>& arguments,
                const CommandContext& context) {
  const absl::StatusOr<EvaluateOptions> options = ParseEvaluate(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->help) return Print(context, EvaluateHelp());
  return RunOnConfig(context, options->source, [&](const LoadedConfig& loaded) {
    Display::Options on;
    on.columns = context.columns;
    Display display(on, context.write);
    return EvaluateCheckpoint(loaded, options->checkpoint, *context.files,
                              display);
  });
}

}  // namespace

std::string EvaluateHelp() {
  return absl::StrCat(kEvaluateHelp, ExitCodesHelp());
}

absl::StatusOr<EvaluateOptions> ParseEvaluate(
    const std::vector<std::string>& arguments) {
  EvaluateOptions options;
  std::vector<std::string> of_train;
  Arguments left(arguments);
  while (!left.Done()) {
    const std::string argument = left.Next();
    const Option option = ParseOption(argument);
    if (option.name == "--checkpoint") {
      TROUPE_ASSIGN_OR_RETURN(
          options.checkpoint,
          left.Value(option, "--checkpoint=checkpoints/glyphs"));
      TROUPE_RETURN_IF_ERROR(CheckPathOption(option.name, options.checkpoint));
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    } else if (option.name == "--config" || option.name == "--set" ||
               option.name == "--ranks") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string value,
          left.Value(option, "what \"trainer evaluate --help\" shows"));
      of_train.push_back(absl::StrCat(option.name, "=", value));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option ", argument,
                       "; run \"trainer evaluate --help\" for a list"));
    }
  }
  if (options.checkpoint.empty()) {
    return absl::InvalidArgumentError(
        "no checkpoint to evaluate; write "
        "--checkpoint=checkpoints/glyphs, say");
  }
  TROUPE_ASSIGN_OR_RETURN(options.source, ParseConfigSource(of_train));
  return options;
}

absl::Status EvaluateCheckpoint(LoadedConfig loaded, const std::string& path,
                                base::FileSystem& files, Display& display) {
  TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint checkpoint,
                          actors::OpenCheckpoint(files, path));
  OnlyEvaluate(checkpoint, loaded.config);
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenData(loaded, files, [&](const std::string& line) {
                            display.Print(line);
                          }));
  if (splits.test == nullptr) {
    return ErrorAt(
        loaded, {"data.path", "data.kind"},
        "the data have no test samples; set data.val_fraction above 0, "
        "or add a test part");
  }
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                          BuildSpec(loaded, splits, files));
  const absl::StatusOr<actors::JobResult> result = actors::RunJob(spec);
  if (!result.ok()) return AtKeys(loaded, result.status());
  const actors::EvaluationReport& evaluation = result->evaluation;
  TestResult test;
  test.step = evaluation.step;
  test.loss = evaluation.loss;
  if (splits.test->spec().is_classification()) {
    test.accuracy = evaluation.accuracy;
  }
  display.Print(absl::StrCat(checkpoint.path(), " ",
                             FormatEvaluation(test, evaluation.count)));
  return absl::OkStatus();
}

Command EvaluateCommand() {
  return {"evaluate", "--checkpoint=DIR [--config=FILE] [options]",
          "loss and accuracy of a checkpoint", EvaluateHelp, RunEvaluate};
}

}  // namespace troupe::tools
