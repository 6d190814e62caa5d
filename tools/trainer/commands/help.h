// What `trainer --help` and its relatives print, made from the key table.

#ifndef TOOLS_TRAINER_COMMANDS_HELP_H_
#define TOOLS_TRAINER_COMMANDS_HELP_H_

#include <string>

#include "tools/trainer/config/config.h"

namespace troupe::tools {

// `trainer --help`: what there is and how to begin.
std::string GeneralHelp();
// `trainer train --help`: options, and every key with its default, meaning and
// an example.
std::string TrainHelp();
// `trainer evaluate --help`.
std::string EvaluateHelp();
// `trainer train --help=markdown`: docs/configuration.md.
std::string TrainHelpMarkdown();
// `trainer train --print-config`: a TOML file that gives this configuration;
// comments say where a value comes from that is not the default.
std::string PrintConfig(const LoadedConfig& loaded);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_HELP_H_
