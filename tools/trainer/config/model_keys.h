// The configuration keys of the section "model", a part of the table of keys
// (config_keys.h).
//
//   for (const ConfigKey& key : ModelKeys()) std::cout << key.name << "\n";

#ifndef TOOLS_TRAINER_CONFIG_MODEL_KEYS_H_
#define TOOLS_TRAINER_CONFIG_MODEL_KEYS_H_

#include "absl/types/span.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

absl::Span<const ConfigKey> ModelKeys();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_MODEL_KEYS_H_
