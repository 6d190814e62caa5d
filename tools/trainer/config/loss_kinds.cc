#include "tools/trainer/config/loss_kinds.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/model_builder.h"

namespace troupe::tools {
namespace {

using nn::Context;
using nn::Tensor;

constexpr char kAuto[] = "auto";
constexpr char kCrossEntropy[] = "cross_entropy";
constexpr char kMean[] = "mean";
constexpr char kSum[] = "sum";

struct KeyOfKind {
  const char* key;
  const char* kind;
};
constexpr KeyOfKind kKeysOfKinds[] = {
    {"loss.label_smoothing", kCrossEntropy},
    {"loss.ignore_index", kCrossEntropy},
    {"loss.class_weights", kCrossEntropy},
    {"loss.delta", "huber"},
    {"loss.beta", "smooth_l1"},
    {"loss.pos_weight", "bce"},
};

std::string KindOf(const LossConfig& config, bool classification) {
  if (config.kind != kAuto) return config.kind;
  return classification ? kCrossEntropy : "mse";
}

// Whether each number is one that the losses take (nn/ops/loss.h).
absl::Status CheckNumbers(const LoadedConfig& loaded) {
  const LossConfig& config = loaded.config.loss;
  const auto at_least_zero = [](double value) {
    return value >= 0 && std::isfinite(value);
  };
  if (!(config.label_smoothing >= 0 && config.label_smoothing <= 1)) {
    return ErrorAt(loaded, {"loss.label_smoothing"},
                   "loss.label_smoothing must be from 0 to 1");
  }
  if (!(config.delta > 0) || std::isinf(config.delta)) {
    return ErrorAt(loaded, {"loss.delta"}, "loss.delta must be above 0");
  }
  if (!at_least_zero(config.beta)) {
    return ErrorAt(loaded, {"loss.beta"}, "loss.beta must be at least 0");
  }
  if (!at_least_zero(config.pos_weight)) {
    return ErrorAt(loaded, {"loss.pos_weight"},
                   "loss.pos_weight must be at least 0");
  }
  if (!std::all_of(config.class_weights.begin(), config.class_weights.end(),
                   at_least_zero)) {
    return ErrorAt(loaded, {"loss.class_weights"},
                   "loss.class_weights must be at least 0");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> LossKinds() {
  return {kAuto, kCrossEntropy, "mse", "l1", "huber", "smooth_l1", "bce"};
}

std::vector<std::string> LossReductions() { return {kMean, kSum}; }

absl::Status CheckLoss(const LoadedConfig& loaded,
                       const data::SampleSpec& sample) {
  const LossConfig& config = loaded.config.loss;
  const std::string kind = KindOf(config, sample.is_classification());
  if ((kind == kCrossEntropy) != sample.is_classification()) {
    return ErrorAt(
        loaded, {"loss.kind", "data.kind", "data.num_classes"},
        absl::StrCat("loss.kind = \"", kind, "\" is for samples ",
                     kind == kCrossEntropy ? "with classes, and the data has "
                                             "targets of numbers"
                                           : "with targets of numbers, and the "
                                             "data has classes"));
  }
  for (const KeyOfKind& of : kKeysOfKinds) {
    if (kind == of.kind || IsDefault(loaded, LoadedConfig(), of.key)) continue;
    return ErrorAt(loaded, {of.key},
                   absl::StrCat(of.key, " is for loss.kind = \"", of.kind,
                                "\", and the kind is \"", kind, "\""));
  }
  TROUPE_RETURN_IF_ERROR(CheckNumbers(loaded));
  const auto weights = static_cast<std::int64_t>(config.class_weights.size());
  if (weights == 0 || weights == sample.num_classes) return absl::OkStatus();
  return ErrorAt(
      loaded, {"loss.class_weights"},
      absl::StrCat("loss.class_weights has ", weights,
                   " numbers, and the data ", sample.num_classes, " classes"));
}

nn::ops::LossFn LossOf(const LossConfig& config, bool classification) {
  const std::string kind = KindOf(config, classification);
  if (kind == "mse") return nn::ops::LossFn(nn::ops::MeanSquaredError);
  if (kind == "l1") return nn::ops::LossFn(nn::ops::L1Loss);
  if (kind == "huber") {
    return [delta = config.delta](Context& ctx, const Tensor& y,
                                  const Tensor& target) {
      return nn::ops::HuberLoss(ctx, y, target, delta);
    };
  }
  if (kind == "smooth_l1") {
    return [beta = config.beta](Context& ctx, const Tensor& y,
                                const Tensor& target) {
      return nn::ops::SmoothL1Loss(ctx, y, target, beta);
    };
  }
  if (kind == "bce") {
    return [weight = config.pos_weight](Context& ctx, const Tensor& y,
                                        const Tensor& target) {
      return nn::ops::BceWithLogits(ctx, y, target, weight);
    };
  }
  nn::ops::CrossEntropyOptions options;
  options.ignore_index = config.ignore_index;
  options.label_smoothing = config.label_smoothing;
  options.class_weights.assign(config.class_weights.begin(),
                               config.class_weights.end());
  return nn::ops::CrossEntropyLoss(options);
}

nn::ops::LossReduction ReductionOf(const LossConfig& config) {
  return config.reduction == kSum ? nn::ops::LossReduction::kSum
                                  : nn::ops::LossReduction::kMean;
}

}  // namespace troupe::tools
