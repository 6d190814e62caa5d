// `trainer train`, once its configuration is checked.

#ifndef TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "base/file_system.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {

struct TrainOutcome {
  absl::Status status;
  // The failure is of the configuration: nothing has been trained.
  bool config_error = false;
  // The signal that stopped the run before its end, with an ok status; else 0.
  int stopped_by = 0;
};

// Trains, and shows it on `display`. Signals stop it (stop_signals.h).
// `start`: how it was started, for commands to type next.
TrainOutcome Train(const LoadedConfig& loaded, const StartWords& start,
                   base::FileSystem& files, Display& display);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_
