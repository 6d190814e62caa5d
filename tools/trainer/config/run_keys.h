// The part of the table of configuration keys about what a run tells and keeps:
// checkpoints, logs, metrics, traces.
//
//   for (const ConfigKey& key : RunKeys()) std::cout << key.name << "\n";
//
// ConfigKeys() (config_keys.h) has all keys, these at its end.

#ifndef TOOLS_TRAINER_CONFIG_RUN_KEYS_H_
#define TOOLS_TRAINER_CONFIG_RUN_KEYS_H_

#include "absl/types/span.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

absl::Span<const ConfigKey> RunKeys();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_RUN_KEYS_H_
