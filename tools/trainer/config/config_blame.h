// Finds the configuration key that an error is about, and where it was set.
//
//   // `status` is "SgdOptions.lr = -1: must be at least 0" and blames lr
//   return AtKeys(loaded, status);
//   // "run.toml:7: optimizer.lr = -1: must be at least 0"
//
// A check is made once, by the layer that needs it. Its error names fields
// (base/field_error.h); the table of keys knows which key sets which field.

#ifndef TOOLS_TRAINER_CONFIG_CONFIG_BLAME_H_
#define TOOLS_TRAINER_CONFIG_CONFIG_BLAME_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns the place that an error names when the values of `keys` contradict
// each other: that of the first key which the command line set, since that is
// the newest; else of the first which the file set; else loaded.Whole().
std::string PlaceOf(const LoadedConfig& loaded,
                    const std::vector<std::string>& keys);

// Returns kInvalidArgument with the message "<place of keys>: <what>".
absl::Status ErrorAt(const LoadedConfig& loaded,
                     const std::vector<std::string>& keys,
                     absl::string_view what);

// Returns `status` with names of fields replaced by those of their keys, and
// with the place of the keys that it blames, if any, in front.
absl::Status AtKeys(const LoadedConfig& loaded, const absl::Status& status);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_BLAME_H_
