// `trainer evaluate`: loss and accuracy of a checkpoint.

#ifndef TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {

struct EvaluateOptions {
  bool help = false;
  std::string checkpoint;  // path
  ConfigSource source;
};

// Parses what follows `evaluate` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<EvaluateOptions> ParseEvaluate(
    const std::vector<std::string>& arguments);

std::string EvaluateHelp();

// Shows loss and accuracy of a checkpoint on the configured test samples: of
// the checkpoint `path`, or of the newest in the folder `path`. Trains nothing
// and writes nothing.
//   kInvalidArgument: there are no test samples, or the checkpoint is of
//     another model; the message begins with the place in the configuration.
//   kNotFound: there is no checkpoint.
absl::Status EvaluateCheckpoint(LoadedConfig loaded, const std::string& path,
                                base::FileSystem& files, Display& display);

Command EvaluateCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_
