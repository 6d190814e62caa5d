// The configuration keys of what a run reports and stores: checkpoints, logs,
// metrics, traces. A part of the table of keys.
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
