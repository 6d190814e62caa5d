// The optimizers that the configuration knows: which keys each takes, what they
// are where nobody sets them, and the optimizer that comes of them.
//
//   FillOptimizerDefaults(parsed);          // lr = 0.001 for "adam", say
//   TROUPE_RETURN_IF_ERROR(CheckOptimizer(parsed));
//   actors::OptimizerFactory optimizer = OptimizerOf(parsed.config);

#ifndef TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_
#define TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/spec/job_spec.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// "sgd", "adam", "adamw", "lamb", "lars".
std::vector<std::string> OptimizerKinds();
// How optimizer.lr goes with mesh.dp: "none", "linear", "sqrt".
std::vector<std::string> LrScalings();

// Gives the keys that nobody set the defaults of the optimizer's kind.
void FillOptimizerDefaults(LoadedConfig& loaded);

// kInvalidArgument, at the place of the key: one that the kind does not take,
// and values that its options refuse.
absl::Status CheckOptimizer(const LoadedConfig& loaded);

// That of a configuration that CheckOptimizer() has passed.
actors::OptimizerFactory OptimizerOf(const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_
