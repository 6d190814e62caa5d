#include "tools/trainer/config/loss_kinds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/kind_table.h"
#include "tools/trainer/config/model_builder.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using Names = std::vector<std::string>;
using data::SampleSpec;
using nn::Context;
using nn::Tensor;
using nn::ops::LossFn;

constexpr char kFromData[] = "auto";
constexpr char kMean[] = "mean";
constexpr char kSum[] = "sum";

bool IsAtLeastZero(double value) { return value >= 0 && std::isfinite(value); }

absl::Status CheckCrossEntropy(const LoadedConfig& loaded,
                               const SampleSpec& sample) {
  const LossConfig& config = loaded.config.loss;
  if (!(config.label_smoothing >= 0 && config.label_smoothing <= 1)) {
    return ErrorAt(loaded, {"loss.label_smoothing"},
                   "loss.label_smoothing must be from 0 to 1");
  }
  if (!std::all_of(config.class_weights.begin(), config.class_weights.end(),
                   IsAtLeastZero)) {
    return ErrorAt(loaded, {"loss.class_weights"},
                   "loss.class_weights must be at least 0");
  }
  const auto weights = static_cast<std::int64_t>(config.class_weights.size());
  // An error on the outputs themselves is CheckModelFits()'s.
  const absl::StatusOr<std::int64_t> outputs =
      CountOutputs(loaded.config, sample);
  if (weights == 0 || !outputs.ok() || weights == *outputs) {
    return absl::OkStatus();
  }
  return ErrorAt(loaded, {"loss.class_weights"},
                 absl::StrCat("loss.class_weights has ", weights,
                              " numbers, and the model ", *outputs,
                              " outputs; write one for each"));
}

LossFn CrossEntropy(const LossConfig& config) {
  nn::ops::CrossEntropyOptions options;
  options.ignore_index = config.ignore_index;
  options.label_smoothing = config.label_smoothing;
  options.class_weights.assign(config.class_weights.begin(),
                               config.class_weights.end());
  return nn::ops::CrossEntropyLoss(options);
}

absl::Status CheckHuber(const LoadedConfig& loaded, const SampleSpec&) {
  const double delta = loaded.config.loss.delta;
  if (delta > 0 && !std::isinf(delta)) return absl::OkStatus();
  return ErrorAt(loaded, {"loss.delta"}, "loss.delta must be above 0");
}

LossFn Huber(const LossConfig& config) {
  return [delta = config.delta](Context& ctx, const Tensor& y,
                                const Tensor& target) {
    return nn::ops::HuberLoss(ctx, y, target, delta);
  };
}

absl::Status CheckSmoothL1(const LoadedConfig& loaded, const SampleSpec&) {
  if (IsAtLeastZero(loaded.config.loss.beta)) return absl::OkStatus();
  return ErrorAt(loaded, {"loss.beta"}, "loss.beta must be at least 0");
}

LossFn SmoothL1(const LossConfig& config) {
  return [beta = config.beta](Context& ctx, const Tensor& y,
                              const Tensor& target) {
    return nn::ops::SmoothL1Loss(ctx, y, target, beta);
  };
}

absl::Status CheckBce(const LoadedConfig& loaded, const SampleSpec&) {
  if (IsAtLeastZero(loaded.config.loss.pos_weight)) return absl::OkStatus();
  return ErrorAt(loaded, {"loss.pos_weight"},
                 "loss.pos_weight must be at least 0");
}

LossFn Bce(const LossConfig& config) {
  return [weight = config.pos_weight](Context& ctx, const Tensor& y,
                                      const Tensor& target) {
    return nn::ops::BceWithLogits(ctx, y, target, weight);
  };
}

// Makes a loss without options.
template <auto kLoss>
LossFn Plain(const LossConfig& /*config*/) {
  return LossFn(kLoss);
}

enum class Targets { kClasses, kNumbers };

struct LossKind {
  const char* name;
  Targets targets;
  std::vector<std::string> keys;  // keys that only this kind uses
  LossFn (*make)(const LossConfig& config);
  // Checks the values of `keys`. Null: the kind has none.
  absl::Status (*check)(const LoadedConfig& loaded, const SampleSpec& sample);
};

// Returns the table of losses. kFromData stands for the first one that takes
// the targets of the data.
const std::vector<LossKind>& LossKinds() {
  static const auto* const kinds = new std::vector<LossKind>{
      {"cross_entropy",
       Targets::kClasses,
       {"label_smoothing", "ignore_index", "class_weights"},
       CrossEntropy,
       CheckCrossEntropy},
      {"mse", Targets::kNumbers, {}, Plain<nn::ops::MeanSquaredError>, nullptr},
      {"l1", Targets::kNumbers, {}, Plain<nn::ops::L1Loss>, nullptr},
      {"huber", Targets::kNumbers, {"delta"}, Huber, CheckHuber},
      {"smooth_l1", Targets::kNumbers, {"beta"}, SmoothL1, CheckSmoothL1},
      {"bce", Targets::kNumbers, {"pos_weight"}, Bce, CheckBce},
  };
  return *kinds;
}

const LossKind& KindOf(const LossConfig& config, bool classification) {
  if (config.kind != kFromData) return KindNamed(LossKinds(), config.kind);
  const Targets targets =
      classification ? Targets::kClasses : Targets::kNumbers;
  return *std::find_if(
      LossKinds().begin(), LossKinds().end(),
      [&](const LossKind& kind) { return kind.targets == targets; });
}

Names KindChoices() {
  Names names = KindNames(LossKinds());
  names.insert(names.begin(), kFromData);
  return names;
}

constexpr ConfigKey kLossKeys[] = {
    {"loss.kind", Field<&C::loss, &LossConfig::kind>(), OneOf(KindChoices),
     "The loss: \"cross_entropy\" of samples with classes; of targets of "
     "numbers "
     "\"mse\" (squared error), \"l1\", \"huber\", \"smooth_l1\", or \"bce\" "
     "(binary "
     "cross entropy with logits). \"auto\" is the first or the second of them.",
     "\"cross_entropy\""},
    {"loss.reduction", Field<&C::loss, &LossConfig::reduction>(), OneOf([] {
       return Names{kMean, kSum};
     }),
     "What of the loss is trained and shown, as in PyTorch: its \"mean\" over "
     "all targets of a global batch that count, or their \"sum\", which no "
     "number divides. The gradient of a sum grows with the batch.",
     "\"sum\""},
    {"loss.label_smoothing", Field<&C::loss, &LossConfig::label_smoothing>(),
     kAny,
     "Part of a target that \"cross_entropy\" gives to all classes evenly.",
     "0.1"},
    {"loss.ignore_index", Field<&C::loss, &LossConfig::ignore_index>(), kAny,
     "The class that \"cross_entropy\" does not count.", "0"},
    {"loss.class_weights", Field<&C::loss, &LossConfig::class_weights>(), kAny,
     "Weights of the classes in \"cross_entropy\"; the mean is that of "
     "weights, "
     "and so is the accuracy. Empty: all 1.",
     "[1, 0.5, 2]"},
    {"loss.delta", Field<&C::loss, &LossConfig::delta>(), kAny,
     "The error at which \"huber\" goes on as a line.", "0.5"},
    {"loss.beta", Field<&C::loss, &LossConfig::beta>(), kAny,
     "The error at which \"smooth_l1\" goes on as a line.", "0.5"},
    {"loss.pos_weight", Field<&C::loss, &LossConfig::pos_weight>(), kAny,
     "Weight of the targets that are 1 in \"bce\".", "2"},
};

}  // namespace

absl::Span<const ConfigKey> LossKeys() { return kLossKeys; }

absl::Status CheckLoss(const LoadedConfig& loaded, const SampleSpec& sample) {
  const LossKind& kind = KindOf(loaded.config.loss, sample.is_classification());
  const bool takes_classes = kind.targets == Targets::kClasses;
  if (takes_classes != sample.is_classification()) {
    return ErrorAt(
        loaded, {"loss.kind", "data.kind", "data.num_classes"},
        absl::StrCat("loss.kind = \"", kind.name, "\" is for samples ",
                     takes_classes ? "with classes, and the data has "
                                     "targets of numbers"
                                   : "with targets of numbers, and the "
                                     "data has classes",
                     "; set loss.kind = \"",
                     KindOf(LossConfig(), sample.is_classification()).name,
                     "\""));
  }
  TROUPE_RETURN_IF_ERROR(
      CheckKeysOfKind(loaded, LoadedConfig(), "loss", LossKinds(), kind.name));
  return kind.check == nullptr ? absl::OkStatus() : kind.check(loaded, sample);
}

LossFn LossOf(const LossConfig& config, bool classification) {
  return KindOf(config, classification).make(config);
}

std::function<std::int64_t(const Tensor& targets)> TargetCounterOf(
    const LossConfig& config) {
  if (config.class_weights.empty()) return nullptr;
  return [ignored = config.ignore_index](const Tensor& targets) {
    const auto* const begin = targets.data<std::int64_t>();
    return std::count_if(
        begin, begin + targets.numel(), [&](std::int64_t target) {
          return target != ignored && target != nn::ops::kIgnoreIndex;
        });
  };
}

nn::ops::LossReduction ReductionOf(const LossConfig& config) {
  return config.reduction == kSum ? nn::ops::LossReduction::kSum
                                  : nn::ops::LossReduction::kMean;
}

}  // namespace troupe::tools
