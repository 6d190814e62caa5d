// The options of `trainer train`, which other commands accept in part.
//
//   TROUPE_ASSIGN_OR_RETURN(TrainOptions options, ParseTrain(arguments));
//   if (options.action == TrainAction::kHelp) std::cout << TrainHelp();
//   TROUPE_ASSIGN_OR_RETURN(LoadedConfig loaded,
//                           LoadConfig(files, options.source.file,
//                                      options.source.settings));
//
// Options are written --name=value or --name value.

#ifndef TOOLS_TRAINER_COMMANDS_TRAIN_OPTIONS_H_
#define TOOLS_TRAINER_COMMANDS_TRAIN_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/launchers/variables.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/launch/start_words.h"

namespace troupe::tools {

// Arguments of LoadConfig().
struct ConfigSource {
  std::string file;  // path; empty: none
  std::vector<Setting> settings;
};

enum class TrainAction { kTrain, kHelp, kHelpMarkdown, kPrintConfig, kSummary };

struct TrainOptions {
  TrainAction action = TrainAction::kTrain;
  ConfigSource source;
  actors::Variables placement;  // options that say which process this is
  bool insecure_network = false;
  // Options that set `placement` and `insecure_network`, as they were written.
  std::vector<std::string> start_options;
};

// Parses what follows `train` on the command line.
//   kInvalidArgument: one line that says what was not understood, and what is.
absl::StatusOr<TrainOptions> ParseTrain(
    const std::vector<std::string>& arguments);

// Parses --config, --set and --ranks for a command that does not train: the
// configuration need not say how long to. Errors: the same as ParseTrain().
absl::StatusOr<ConfigSource> ParseConfigSource(
    const std::vector<std::string>& arguments);
// The same from the values of these options; empty ones are not set.
absl::StatusOr<ConfigSource> ParseConfigSource(
    const std::string& config, const std::vector<std::string>& sets,
    const std::string& ranks = "");

// Loads the configuration for a command that does not train, and calls `run`
// with it. Prints the error of either; one of the configuration is kExitUsage.
// Returns the exit code.
int RunOnConfig(const CommandContext& context, const ConfigSource& source,
                const std::function<absl::Status(const LoadedConfig&)>& run);

// Returns the command that starts the same run again, quoted for the shell.
// `start` says how this one was started. Settings of one run only (resume,
// replace, --trace) are left out, and so are those that later ones replace.
// `change`, unless empty, is a further setting: "train.epochs=8". It replaces
// the one of its key, and a length of the run that of either key.
std::string FormatCommand(const StartWords& start, const std::string& config,
                          absl::Span<const Setting> settings,
                          const std::string& change = "");

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_TRAIN_OPTIONS_H_
