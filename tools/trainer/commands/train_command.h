// `trainer train`: the row of the table of commands.

#ifndef TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_

#include "tools/trainer/commands/command.h"

namespace troupe::tools {

Command TrainCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_TRAIN_COMMAND_H_
