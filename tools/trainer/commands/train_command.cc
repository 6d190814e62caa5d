#include "tools/trainer/commands/train_command.h"

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "actors/launchers/foreign_launchers.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "base/check.h"
#include "data/registry.h"
#include "nn/kernels/kernel_choices.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/commands/training_run.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/model_builder.h"
#include "tools/trainer/launch/cluster_setup.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {
namespace {

// Whether a user watches the output. mpirun gives each process a terminal of
// its own and forwards its output, perhaps to a file; so does srun --pty.
bool HasTerminal(const actors::Placement& placement,
                 const CommandContext& context) {
  return context.on_terminal && placement.found_by != actors::kOpenMpi &&
         placement.found_by != actors::kSlurm;
}

Display::Options DisplayOptions(const LogConfig& config,
                                const actors::Placement& placement,
                                const CommandContext& context) {
  const bool has_terminal = HasTerminal(placement, context);
  const auto is_on = [&](const std::string& value, bool by_itself) {
    return value == "on" || (value == "auto" && by_itself);
  };
  Display::Options options;
  options.bar = is_on(config.progress, has_terminal && context.rewrites_lines);
  options.tables = is_on(config.model_table, has_terminal);
  options.log_every = config.every;
  options.columns = context.columns;
  return options;
}

int TrainAndShow(const LoadedConfig& loaded, const actors::Placement& placement,
                 const StartWords& start, const CommandContext& context) {
  Display display(DisplayOptions(loaded.config.log, placement, context),
                  context.write);
  const TrainOutcome outcome =
      Train(loaded, start, *context.files, display, context.stop_waiting);
  if (!outcome.status.ok()) {
    return Fail(context, outcome.status,
                outcome.config_error ? kExitUsage : kExitFailed);
  }
  if (outcome.stopped_by == 0) return kExitOk;
  if (outcome.stopped_by != SIGPIPE) return kExitStopped;
  // The last lines had no reader.
  return Fail(context,
              absl::CancelledError("stopped before the end: nobody reads the "
                                   "output any more"),
              kExitStopped);
}

int ShowSummary(const LoadedConfig& loaded, const CommandContext& context) {
  const TrainerConfig& config = loaded.config;
  std::optional<data::SampleSpec> sample = data::KnownSampleSpec(config.data);
  if (!sample) {
    const absl::StatusOr<data::DataSplits> splits =
        OpenData(loaded, *context.files, NotesOf(context));
    if (!splits.ok()) return Fail(context, splits.status(), kExitFailed);
    sample = splits->train->spec();
  }
  const absl::StatusOr<nn::ModelSummary> summary = SummaryOf(config, *sample);
  if (!summary.ok()) return Fail(context, summary.status(), kExitUsage);
  return Print(context, summary->ToString());
}

// Completes the configuration with this process's place in the job.
absl::Status Place(const actors::Placement& placement,
                   const TrainOptions& options, const CommandContext& context,
                   LoadedConfig* loaded) {
  if (options.insecure_network && placement.processes > 1) {
    context.write(
        "warning: --insecure-network: whoever reaches the ports of this job "
        "can end it, or worse\n");
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<Setting> more,
                          RankSettings(placement, *loaded));
  if (!more.empty()) {
    std::vector<Setting> settings = options.source.settings;
    settings.insert(settings.end(), more.begin(), more.end());
    TROUPE_ASSIGN_OR_RETURN(
        *loaded, LoadConfig(*context.files, options.source.file, settings));
    loaded->settings = options.source.settings;
  }
  TROUPE_ASSIGN_OR_RETURN(
      loaded->config.job.cluster,
      ClusterOf(placement, *loaded, options.insecure_network));
  if (auto& cluster = loaded->config.job.cluster; cluster.has_value()) {
    cluster->warn = [write = context.write](const std::string& words) {
      write(absl::StrCat("warning: ", words, "\n"));
    };
  }
  return absl::OkStatus();
}

// Replaces kAutoKernelCache by the default folder, and kNoKernelCache by none.
void ResolveKernelCache(const actors::Variables& environment,
                        TrainerConfig& config) {
  if (config.kernel_cache == kAutoKernelCache) {
    config.kernel_cache = nn::KernelCacheFolder(
        environment.Text("XDG_CACHE_HOME"), environment.Text("HOME"));
  } else if (config.kernel_cache == kNoKernelCache) {
    config.kernel_cache.clear();
  }
}

// Returns a context for a run, whose lines are progress and not its result: it
// may be started without an output.
CommandContext ForProgress(const CommandContext& context) {
  CommandContext progress = context;
  if (!context.has_output) {
    progress.write = [](absl::string_view) { return true; };
  }
  return progress;
}

// Finds this process's place in the job, and trains.
int PlaceAndTrain(const TrainOptions& options, LoadedConfig loaded,
                  const CommandContext& context) {
  const actors::Variables environment =
      actors::ReadEnvironment(context.environment);
  const absl::StatusOr<actors::Placement> placement =
      actors::FindPlacement(environment, options.placement);
  if (!placement.ok()) return Fail(context, placement.status(), kExitUsage);
  if (!placement->found_by.empty()) {
    context.write(absl::StrCat(placement->ToString(), "\n"));
  }
  if (!placement->hint.empty()) {
    context.write(absl::StrCat(placement->hint, "\n"));
  }
  const absl::Status placed = Place(*placement, options, context, &loaded);
  if (!placed.ok()) return Fail(context, placed);
  ResolveKernelCache(environment, loaded.config);
  return TrainAndShow(loaded, *placement,
                      WordsOfStart(context.program, *placement, environment,
                                   options.start_options),
                      context);
}

int RunTrain(const std::vector<std::string>& arguments,
             const CommandContext& context) {
  const absl::StatusOr<TrainOptions> options = ParseTrain(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->action == TrainAction::kHelp) {
    return Print(context, TrainHelp());
  }
  if (options->action == TrainAction::kHelpMarkdown) {
    return Print(context, TrainHelpMarkdown());
  }
  absl::StatusOr<LoadedConfig> loaded = LoadConfig(
      *context.files, options->source.file, options->source.settings);
  if (!loaded.ok()) return Fail(context, loaded.status(), kExitUsage);
  if (options->action == TrainAction::kPrintConfig) {
    return Print(context, PrintConfig(*loaded));
  }
  if (options->action == TrainAction::kSummary) {
    return ShowSummary(*loaded, context);
  }
  return PlaceAndTrain(*options, *std::move(loaded), ForProgress(context));
}

}  // namespace

Command TrainCommand() {
  return {"train", "[--config=FILE] [options]",
          "train, as file and options say", TrainHelp, RunTrain};
}

}  // namespace troupe::tools
