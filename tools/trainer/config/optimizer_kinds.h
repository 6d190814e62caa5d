// The section "optimizer" of the configuration: its options, its keys, and the
// optimizers that optimizer.kind names.
//
//   FillOptimizerDefaults(parsed);          // lr = 0.001 for "adam", say
//   TROUPE_RETURN_IF_ERROR(CheckOptimizer(parsed));
//   SpanSchedule(/*run_steps=*/1000, parsed.config);
//   actors::OptimizerFactory optimizer = OptimizerOf(parsed.config);
//
// To add an optimizer, add a row to Kinds() in optimizer_kinds.cc. An option
// that no other optimizer has also needs a field here and a key there.

#ifndef TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_
#define TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/spec/job_spec.h"
#include "nn/optim/optimizer_options.h"

namespace troupe::tools {

struct ConfigKey;
struct LoadedConfig;
struct TrainerConfig;

// Options of all optimizers. Each kind uses some of them and has its own
// defaults.
struct OptimizerConfig {
  std::string kind = "sgd";
  double lr = 0.01;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool amsgrad = false;
  double trust_coefficient = 0.001;
  // Parameters without weight decay: by pattern, and those with fewer than two
  // axes.
  std::vector<std::string> no_decay;
  bool no_decay_1d = false;
  std::string lr_scaling = "none";
  // Global batch size that `lr` is for, if lr_scaling is another; 0: not set.
  std::int64_t lr_base_batch_size = 0;
  nn::OptimizerOptions common;
};

// The keys of the section, a part of the table of keys (config_keys.h).
absl::Span<const ConfigKey> OptimizerKeys();

// Sets keys that were not set to the defaults of the optimizer's kind.
void FillOptimizerDefaults(LoadedConfig& loaded);

// Checks the keys of the optimizer.
//   kInvalidArgument, with the place of the key: the kind does not use it, or
//     its options reject the value.
absl::Status CheckOptimizer(const LoadedConfig& loaded);

// Ends a schedule whose steps were not set with a run of `run_steps` steps.
void SpanSchedule(std::int64_t run_steps, TrainerConfig& config);

// Returns the learning rate before its schedule, scaled by the batch size.
double ScaledLr(const TrainerConfig& config);

// Returns the optimizer of a configuration that CheckOptimizer() accepts, after
// SpanSchedule().
actors::OptimizerFactory OptimizerOf(const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_OPTIMIZER_KINDS_H_
