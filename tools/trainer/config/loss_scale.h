// The configuration of the loss scale: one key is a number or a word.
//
//   TROUPE_RETURN_IF_ERROR(CheckLossScale("dynamic"));
//   FillLossScale(config);                    // when all keys are set
//   config.job.dynamic_loss_scale;            // what the job takes

#ifndef TOOLS_TRAINER_CONFIG_LOSS_SCALE_H_
#define TOOLS_TRAINER_CONFIG_LOSS_SCALE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns kInvalidArgument, unless the text is "auto", "dynamic" or a finite
// number above 0.
absl::Status CheckLossScale(const std::string& scale);

// Sets the loss scale of config.job from the keys. "auto" is "dynamic" if
// train.precision is "f16", and 1 otherwise.
void FillLossScale(TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_LOSS_SCALE_H_
