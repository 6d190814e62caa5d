// The section "loss" of the configuration: its options, its keys, and the
// losses that loss.kind names.
//
//   TROUPE_RETURN_IF_ERROR(CheckLoss(loaded, sample));
//   nn::ops::LossFn loss =
//       LossOf(loaded.config.loss, /*classification=*/true);
//
// To add a loss, add a row to Kinds() in loss_kinds.cc. An option that no other
// loss has also needs a field here and a key there.

#ifndef TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_
#define TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/dataset.h"
#include "nn/ops/loss.h"
#include "nn/tensor/tensor.h"

namespace troupe::tools {

struct ConfigKey;
struct LoadedConfig;

// Options of all losses. Each kind uses some of them.
struct LossConfig {
  std::string kind = "auto";
  std::string reduction = "mean";  // or "sum"
  double label_smoothing = 0;
  std::int64_t ignore_index = -100;
  std::vector<double> class_weights;  // empty: all 1
  double delta = 1;
  double beta = 1;
  double pos_weight = 1;
};

// The keys of the section, a part of the table of keys (config_keys.h).
absl::Span<const ConfigKey> LossKeys();

// Checks the keys of the loss.
//   kInvalidArgument, with the place of the key: the loss does not suit the
//     data, the kind does not use the key, or the number of class weights is
//     not the number of classes.
absl::Status CheckLoss(const LoadedConfig& loaded,
                       const data::SampleSpec& sample);

// Returns the loss function of a configuration that CheckLoss() accepts, for
// samples with classes or without.
nn::ops::LossFn LossOf(const LossConfig& config, bool classification);
nn::ops::LossReduction ReductionOf(const LossConfig& config);
// Returns JobSpec::count_targets; null without class weights.
std::function<std::int64_t(const nn::Tensor& targets)> TargetCounterOf(
    const LossConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_
