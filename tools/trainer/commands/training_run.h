// One run of `trainer train`, after its configuration was checked.

#ifndef TOOLS_TRAINER_COMMANDS_TRAINING_RUN_H_
#define TOOLS_TRAINER_COMMANDS_TRAINING_RUN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/files/file_system.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {

struct TrainOutcome {
  absl::Status status;
  // Whether the configuration caused the failure. Nothing was trained then.
  bool config_error = false;
  // Signal that stopped the run before its end, with an OK status; otherwise 0.
  int stopped_by = 0;
};

// Trains and shows the progress on `display`. Signals stop it (stop_signals.h).
// `start` says how the program was started, for the commands to type next that
// the summary suggests. `stop_waiting` is called first when a signal arrives
// (CommandContext::stop_waiting).
TrainOutcome Train(const LoadedConfig& loaded, const StartWords& start,
                   base::FileSystem& files, Display& display,
                   const std::function<void()>& stop_waiting);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_TRAINING_RUN_H_
