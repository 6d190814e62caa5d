// From configuration to modules.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
//                           MakeModel(config));
//
// A model is made from the configuration alone, before any file is opened, so
// that it can be checked first.

#ifndef TOOLS_TRAINER_MODEL_BUILDER_H_
#define TOOLS_TRAINER_MODEL_BUILDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/registry.h"
#include "nn/modules/sequential.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// What one sample of the configured data set looks like.
data::SampleSpec SampleSpecOf(const data::DatasetOptions& options);

// kInvalidArgument, without a place: the model does not take such samples.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_MODEL_BUILDER_H_
