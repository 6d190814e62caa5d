// The keys of the sections [loss] and [optimizer]: a part of the table of keys
// (config_keys.h).
//
//   for (const ConfigKey& key : LossAndOptimizerKeys()) {
//     std::cout << key.name << "\n";
//   }

#ifndef TOOLS_TRAINER_CONFIG_OPTIMIZER_KEYS_H_
#define TOOLS_TRAINER_CONFIG_OPTIMIZER_KEYS_H_

#include "absl/types/span.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

absl::Span<const ConfigKey> LossAndOptimizerKeys();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_OPTIMIZER_KEYS_H_
