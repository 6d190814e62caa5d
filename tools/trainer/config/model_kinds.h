// The networks that model.kind names.
//
//   ModelKinds();                         // {"lenet", "mlp", ..., "gpt2", ...}
//   const auto sample = data::ClassificationSpec({28, 28, 1}, 10);
//   const auto model = MakeModelOfKind(config.model, sample, /*outputs=*/10);

#ifndef TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_
#define TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "nn/modules/sequential.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

std::vector<std::string> ModelKinds();

// `config.kind` for samples of `spec`, with `outputs` classes, tokens or
// elements of a target.
//   kInvalidArgument: it does not take such samples, or its sizes do not fit
//     together.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModelOfKind(
    const ModelConfig& config, const data::SampleSpec& spec,
    std::int64_t outputs);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_
