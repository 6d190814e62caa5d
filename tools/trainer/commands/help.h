// Help texts, made from the tables of commands, configuration keys and exit
// codes.

#ifndef TOOLS_TRAINER_COMMANDS_HELP_H_
#define TOOLS_TRAINER_COMMANDS_HELP_H_

#include <string>

#include "absl/types/span.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns the text of `trainer --help`: all commands and how to begin.
// `commands` begins with train.
std::string GeneralHelp(absl::Span<const Command> commands);
// Returns the list of exit codes that ends a help text.
std::string ExitCodesHelp();
// Returns the text of `trainer train --help`: options, and every key with its
// default, meaning and an example.
std::string TrainHelp();
// Returns the text of `trainer train --help=markdown`: docs/configuration.md.
std::string TrainHelpMarkdown();
// Returns the text of `trainer train --print-config`: a TOML file that gives
// this configuration. Comments say where a value that is not the default comes
// from.
std::string PrintConfig(const LoadedConfig& loaded);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_HELP_H_
