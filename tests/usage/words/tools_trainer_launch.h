// Declares names that the usage comments in tools/trainer/launch/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_LAUNCH_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_LAUNCH_H_

#include <string>
#include <vector>

#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools::usage {

namespace core_shares_h {
void Show(const std::vector<int>& cores);
}

namespace start_words_h {
extern const actors::Placement placement;
extern const actors::Variables environment;
}  // namespace start_words_h

namespace launch_command_h {
extern const std::vector<std::string> arguments;
}

namespace cluster_setup_h {
extern const actors::Placement placement;
extern LoadedConfig loaded;
}  // namespace cluster_setup_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_LAUNCH_H_
