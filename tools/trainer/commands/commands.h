// The table of all subcommands of `trainer`, and the dispatch by their names.
//
//   const std::vector<std::string> arguments(argv + 1, argv + argc);
//   return RunCommand(arguments, context);

#ifndef TOOLS_TRAINER_COMMANDS_COMMANDS_H_
#define TOOLS_TRAINER_COMMANDS_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/trainer/commands/command.h"

namespace troupe::tools {

// All subcommands, in the order in which `trainer help` lists them.
absl::Span<const Command> Commands();

// Runs the command that the first of `arguments` names (no argument: help) and
// returns the exit code: kExitUsage if there is no such command.
int RunCommand(const std::vector<std::string>& arguments,
               const CommandContext& context);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_COMMANDS_H_
