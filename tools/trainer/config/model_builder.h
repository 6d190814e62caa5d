// From configuration to modules.
//
//   const auto sample = data::KnownSampleSpec(config.data);
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
//                           MakeModel(config, *sample));
//
// Where the configuration says what samples look like, a model is made before
// any file is opened, so that it can be checked first; otherwise later.

#ifndef TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_
#define TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/registry.h"
#include "nn/modules/sequential.h"
#include "nn/modules/summary.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// The dtype of the model's inputs: floats become train.precision when they are
// loaded.
nn::DType InputDType(const TrainerConfig& config,
                     const data::SampleSpec& sample);

// kInvalidArgument, without a place: the model does not take such samples.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config, const data::SampleSpec& sample);

// The model's layers, shapes and sizes, for one sample.
absl::StatusOr<nn::ModelSummary> SummaryOf(const TrainerConfig& config,
                                           const data::SampleSpec& sample);

// Whether the model takes the samples, is of a size that makes sense, and gives
// what targets are compared with: kInvalidArgument, without a place.
absl::Status CheckModelFits(const TrainerConfig& config,
                            const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_
