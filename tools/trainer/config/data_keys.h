// The configuration keys of the section "data", a part of the table of keys
// (config_keys.h).
//
//   for (const ConfigKey& key : DataKeys()) std::cout << key.name << "\n";

#ifndef TOOLS_TRAINER_CONFIG_DATA_KEYS_H_
#define TOOLS_TRAINER_CONFIG_DATA_KEYS_H_

#include "absl/types/span.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

absl::Span<const ConfigKey> DataKeys();

// Makes the padding of texts the class that the loss does not count.
void FillPadding(TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_DATA_KEYS_H_
