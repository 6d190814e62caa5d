// What was asked for on the command line.
//
//   absl::StatusOr<Command> command = ParseCommandLine({argv + 1, argv +
//   argc}); switch (command->kind) { ... }
//
// Options are written --name=value or --name value.

#ifndef TOOLS_TRAINER_COMMAND_LINE_H_
#define TOOLS_TRAINER_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/trainer/config.h"

namespace troupe::tools {

enum class CommandKind {
  kHelp,
  kTrainHelp,
  kTrainHelpMarkdown,
  kPrintConfig,
  kTrain,
};

struct Command {
  CommandKind kind = CommandKind::kHelp;
  std::string config;  // path; of kPrintConfig and kTrain
  std::vector<Setting> settings;
};

// kInvalidArgument: one line that says what was not understood, and what is.
absl::StatusOr<Command> ParseCommandLine(
    const std::vector<std::string>& arguments);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMAND_LINE_H_
