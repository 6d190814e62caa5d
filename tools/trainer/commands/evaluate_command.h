// `trainer evaluate`, once its configuration is checked.

#ifndef TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "base/file_system.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {

// Shows loss and accuracy of a checkpoint on the configured test samples:
// `path`, or the newest in the folder `path`. Trains nothing, writes nothing.
//   kInvalidArgument: there are no test samples, or the checkpoint is another
//     model's; the line begins with the place.
//   kNotFound: there is no checkpoint.
absl::Status EvaluateCheckpoint(LoadedConfig loaded, const std::string& path,
                                base::FileSystem& files, Display& display);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_EVALUATE_COMMAND_H_
