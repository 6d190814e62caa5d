#include "tools/trainer/config/optimizer_kinds.h"

#include <cmath>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {
namespace {

// Defaults are PyTorch's where it has the optimizer, and the papers' otherwise.
struct Kind {
  const char* name;
  double lr, weight_decay, momentum, eps;
  std::vector<std::string> keys;  // of those that not all kinds take
};

const std::vector<Kind>& Kinds() {
  static const auto* const kinds = new std::vector<Kind>{
      {"sgd", 0.01, 0, 0, 1e-8, {"momentum", "dampening", "nesterov"}},
      {"adam", 1e-3, 0, 0, 1e-8, {"betas", "eps", "amsgrad"}},
      {"adamw", 1e-3, 0.01, 0, 1e-8, {"betas", "eps", "amsgrad"}},
      {"lamb", 1e-3, 0, 0, 1e-6, {"betas", "eps"}},
      {"lars", 0.01, 0, 0.9, 0, {"momentum", "eps", "trust_coefficient"}},
  };
  return *kinds;
}

constexpr const char* kKeysOfSome[] = {
    "momentum", "dampening", "nesterov",          "betas",
    "eps",      "amsgrad",   "trust_coefficient",
};

const Kind& KindOf(const OptimizerConfig& config) {
  for (const Kind& kind : Kinds()) {
    if (config.kind == kind.name) return kind;
  }
  TROUPE_CHECK(false, "the table of keys lets no other kind pass");
  return Kinds()[0];
}

bool Takes(const Kind& kind, const std::string& key) {
  return absl::c_linear_search(kind.keys, key);
}

absl::Status CheckTaken(const LoadedConfig& loaded) {
  const Kind& kind = KindOf(loaded.config.optimizer);
  LoadedConfig defaults;
  defaults.config.optimizer.kind = kind.name;
  FillOptimizerDefaults(defaults);
  for (const char* name : kKeysOfSome) {
    const std::string key = absl::StrCat("optimizer.", name);
    if (Takes(kind, name) || IsDefault(loaded, defaults, key)) continue;
    std::vector<std::string> takers;
    for (const Kind& other : Kinds()) {
      if (Takes(other, name)) takers.push_back(other.name);
    }
    return ErrorAt(loaded, {key},
                   absl::StrCat(key, " is for optimizer.kind = \"",
                                absl::StrJoin(takers, "\" or \""),
                                "\", and the kind is \"", kind.name, "\""));
  }
  if (loaded.config.optimizer.betas.size() == 2) return absl::OkStatus();
  return ErrorAt(loaded, {"optimizer.betas"},
                 "optimizer.betas takes two numbers, such as [0.9, 0.999]");
}

double ScaledLr(const TrainerConfig& config) {
  const double lr = config.optimizer.lr;
  const double replicas = config.job.plan.mesh.dp();
  if (config.optimizer.lr_scaling == "linear") return lr * replicas;
  if (config.optimizer.lr_scaling == "sqrt") return lr * std::sqrt(replicas);
  return lr;
}

nn::OptimizerOptions CommonOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  nn::OptimizerOptions common = from.common;
  for (const std::string& pattern : from.no_decay) {
    common.groups.push_back({pattern, /*lr_factor=*/1, /*weight_decay=*/0});
  }
  if (from.no_decay_1d) common.groups.push_back(nn::NoDecayGroup());
  // Updates would be lost in 16 bits, and squares of gradients vanish; changes
  // nothing where train.precision has more.
  common.f32_master = true;
  if (config.job.dynamic_loss_scale) common.skip_nonfinite = true;
  return common;
}

nn::SgdOptions SgdOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  nn::SgdOptions options;
  options.lr = ScaledLr(config);
  options.momentum = from.momentum;
  options.dampening = from.dampening;
  options.weight_decay = from.weight_decay;
  options.nesterov = from.nesterov;
  options.common = CommonOf(config);
  return options;
}

// For Adam and for LAMB, which have the same names.
template <typename Options>
Options AdaptiveOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  Options options;
  options.lr = ScaledLr(config);
  options.beta1 = from.betas[0];
  options.beta2 = from.betas[1];
  options.eps = from.eps;
  options.weight_decay = from.weight_decay;
  options.common = CommonOf(config);
  return options;
}

nn::AdamOptions AdamOf(const TrainerConfig& config) {
  auto options = AdaptiveOf<nn::AdamOptions>(config);
  options.decoupled_weight_decay = config.optimizer.kind == "adamw";
  options.amsgrad = config.optimizer.amsgrad;
  return options;
}

nn::LarsOptions LarsOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  nn::LarsOptions options;
  options.lr = ScaledLr(config);
  options.momentum = from.momentum;
  options.weight_decay = from.weight_decay;
  options.trust_coefficient = from.trust_coefficient;
  options.eps = from.eps;
  options.common = CommonOf(config);
  return options;
}

template <typename Optimizer, typename Options>
actors::OptimizerFactory MakerOf(const Options& options) {
  return [options] { return std::make_unique<Optimizer>(options); };
}

// fn(make, options) for the optimizer that `config` describes: make(options) is
// its factory.
template <typename Fn>
auto WithOptions(const TrainerConfig& config, Fn fn) {
  const std::string& kind = config.optimizer.kind;
  if (kind == "sgd") {
    return fn(MakerOf<nn::Sgd, nn::SgdOptions>, SgdOf(config));
  }
  if (kind == "lamb") {
    return fn(MakerOf<nn::Lamb, nn::LambOptions>,
              AdaptiveOf<nn::LambOptions>(config));
  }
  if (kind == "lars") {
    return fn(MakerOf<nn::Lars, nn::LarsOptions>, LarsOf(config));
  }
  return fn(MakerOf<nn::Adam, nn::AdamOptions>, AdamOf(config));
}

}  // namespace

std::vector<std::string> OptimizerKinds() {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) names.push_back(kind.name);
  return names;
}

std::vector<std::string> LrScalings() { return {"none", "linear", "sqrt"}; }

void FillOptimizerDefaults(LoadedConfig& loaded) {
  OptimizerConfig& config = loaded.config.optimizer;
  const Kind& kind = KindOf(config);
  if (!loaded.IsSet("optimizer.lr")) config.lr = kind.lr;
  if (!loaded.IsSet("optimizer.weight_decay")) {
    config.weight_decay = kind.weight_decay;
  }
  if (!loaded.IsSet("optimizer.momentum")) config.momentum = kind.momentum;
  if (!loaded.IsSet("optimizer.eps")) config.eps = kind.eps;
}

absl::Status CheckOptimizer(const LoadedConfig& loaded) {
  TROUPE_RETURN_IF_ERROR(CheckTaken(loaded));
  return WithOptions(loaded.config, [&](auto, const auto& options) {
    return AtKeys(loaded, options.Validate());
  });
}

actors::OptimizerFactory OptimizerOf(const TrainerConfig& config) {
  return WithOptions(config, [](auto make, const auto& options) {
    return actors::OptimizerFactory(make(options));
  });
}

}  // namespace troupe::tools
