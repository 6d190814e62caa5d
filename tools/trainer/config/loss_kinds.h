// The losses that the configuration knows, which keys each takes, and the
// function that comes of them.
//
//   TROUPE_RETURN_IF_ERROR(CheckLoss(loaded, sample));
//   nn::ops::LossFn loss =
//       LossOf(loaded.config.loss, /*classification=*/true);

#ifndef TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_
#define TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/ops/loss.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// "auto", "cross_entropy", "mse", "l1", "huber", "smooth_l1", "bce".
std::vector<std::string> LossKinds();

// "mean", "sum".
std::vector<std::string> LossReductions();

// kInvalidArgument, at the place of the key: a loss that does not suit the
// data, a key that the kind does not take, class weights that are not one for
// each class.
absl::Status CheckLoss(const LoadedConfig& loaded,
                       const data::SampleSpec& sample);

// The loss of a configuration that CheckLoss() has passed, for samples with
// classes or without.
nn::ops::LossFn LossOf(const LossConfig& config, bool classification);
nn::ops::LossReduction ReductionOf(const LossConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_LOSS_KINDS_H_
