// Makes modules from a configuration.
//
//   const auto sample = data::KnownSampleSpec(config.data);
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
//                           MakeModel(config, *sample));
//
// If the configuration determines the shapes of samples, a model can be made
// and checked before any file is opened; otherwise only later.

#ifndef TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_
#define TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/registry.h"
#include "nn/modules/sequential.h"
#include "nn/modules/summary.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns the dtype of the model's inputs: floats are converted to
// train.precision when they are loaded.
nn::DType InputDType(const TrainerConfig& config,
                     const data::SampleSpec& sample);

// Returns the number of outputs of the model: at least that of the data.
//   kInvalidArgument, without a place: the configuration says fewer.
absl::StatusOr<std::int64_t> CountOutputs(const TrainerConfig& config,
                                          const data::SampleSpec& sample);

// Makes the model.
//   kInvalidArgument, without a place: it does not take such samples.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    const TrainerConfig& config, const data::SampleSpec& sample);

// Returns the model's layers, shapes and sizes for one sample.
absl::StatusOr<nn::ModelSummary> SummaryOf(const TrainerConfig& config,
                                           const data::SampleSpec& sample);

// Returns kInvalidArgument, without a place, unless the model takes the
// samples, has a plausible size, and its output has the shape that the loss
// compares with the targets.
absl::Status CheckModelFits(const TrainerConfig& config,
                            const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_MODEL_BUILDER_H_
