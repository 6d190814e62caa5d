// Rows of the table of commands for those that live in other folders:
// `trainer profile`, `report`, `launch` and `doctor`.

#ifndef TOOLS_TRAINER_COMMANDS_OTHER_COMMANDS_H_
#define TOOLS_TRAINER_COMMANDS_OTHER_COMMANDS_H_

#include "tools/trainer/commands/command.h"

namespace troupe::tools {

Command ProfileCommand();
Command ReportCommand();
Command LaunchCommand();
Command DoctorCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_OTHER_COMMANDS_H_
