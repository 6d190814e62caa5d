// Compares the model and the settings of a job with those of the run that wrote
// its checkpoint: tensors of the same names and shapes may belong to a network
// with another activation, or to another optimizer.
//
//   state.settings = SettingsOf(spec);                    // when it is saved
//   TROUPE_ASSIGN_OR_RETURN(std::vector<std::string> changes,
//                           CompareSettings(spec, checkpoint));
//   // {"optimizer.lr: 0.1, 0.02"}: then, now
//
// Settings are those of JobSpec::settings, and the type of each module
// ("module features.1": "nn::ReLU"), apart from dropouts, which people add and
// remove on purpose. A checkpoint of an earlier version has none and is not
// compared. Nor is a key that only one of the two has, since versions add and
// remove keys; a module that only one has is a difference.

#ifndef ACTORS_SETUP_SETTINGS_H_
#define ACTORS_SETUP_SETTINGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

using Settings = std::map<std::string, std::string>;

Settings SettingsOf(const JobSpec& spec);

// Returns a line for each difference, with the value then and now.
//   kInvalidArgument: a module, or a key of JobSpec::fixed_settings, differs,
//     and CheckpointOptions allows no difference; names the key, both values,
//     and the fields that would allow it.
absl::StatusOr<std::vector<std::string>> CompareSettings(
    const JobSpec& spec, const Checkpoint& checkpoint);

// Returns kInvalidArgument if a module, or a fixed setting of the model
// ("model.heads"), differs: for users of a trained model, whose loss and
// optimizer do not matter.
absl::Status CheckSameModel(const JobSpec& spec, const Checkpoint& checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_SETTINGS_H_
