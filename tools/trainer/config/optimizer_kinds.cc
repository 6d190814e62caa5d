#include "tools/trainer/config/optimizer_kinds.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/kind_table.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using Names = std::vector<std::string>;
using nn::AdamOptions;
using nn::LambOptions;
using nn::LarsOptions;
using nn::LrSchedule;
using nn::OptimizerOptions;
using nn::SgdOptions;

OptimizerOptions CommonOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  OptimizerOptions common = from.common;
  for (const std::string& pattern : from.no_decay) {
    common.groups.push_back({pattern, /*lr_factor=*/1, /*weight_decay=*/0});
  }
  if (from.no_decay_1d) common.groups.push_back(nn::NoDecayGroup());
  // In 16 bits small updates would be lost, and squares of gradients vanish.
  // This has no effect if train.precision has more bits.
  common.f32_master = !common.stochastic_rounding;
  common.rounding_seed = config.job.seed;
  if (config.job.dynamic_loss_scale) common.skip_nonfinite = true;
  return common;
}

// Returns options that have the values which all optimizers take.
template <typename Options>
Options BasicsOf(const TrainerConfig& config) {
  Options options;
  options.lr = ScaledLr(config);
  options.weight_decay = config.optimizer.weight_decay;
  options.common = CommonOf(config);
  return options;
}

SgdOptions SgdOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  auto options = BasicsOf<SgdOptions>(config);
  options.momentum = from.momentum;
  options.dampening = from.dampening;
  options.nesterov = from.nesterov;
  return options;
}

// Sets the options of Adam and LAMB, which have the same names.
template <typename Options>
Options AdaptiveOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  auto options = BasicsOf<Options>(config);
  options.beta1 = from.betas[0];
  options.beta2 = from.betas[1];
  options.eps = from.eps;
  return options;
}

AdamOptions AdamOf(const TrainerConfig& config) {
  auto options = AdaptiveOf<AdamOptions>(config);
  options.amsgrad = config.optimizer.amsgrad;
  return options;
}

AdamOptions AdamWOf(const TrainerConfig& config) {
  AdamOptions options = AdamOf(config);
  options.decoupled_weight_decay = true;
  return options;
}

LarsOptions LarsOf(const TrainerConfig& config) {
  const OptimizerConfig& from = config.optimizer;
  auto options = BasicsOf<LarsOptions>(config);
  options.momentum = from.momentum;
  options.trust_coefficient = from.trust_coefficient;
  options.eps = from.eps;
  return options;
}

struct Made {
  absl::Status status;  // result of the options' Validate()
  actors::OptimizerFactory factory;
};

template <typename Optimizer, auto kOptionsOf>
Made Make(const TrainerConfig& config) {
  const auto options = kOptionsOf(config);
  return {options.Validate(),
          [options] { return std::make_unique<Optimizer>(options); }};
}

// A kind of optimizer. Its defaults are PyTorch's, or the paper's if PyTorch
// does not have it.
struct OptimizerKind {
  const char* name;
  struct {
    double lr, weight_decay, momentum, eps;
  } defaults;
  std::vector<std::string> keys;  // keys used, of those that not all kinds use
  Made (*make)(const TrainerConfig& config);
};

const std::vector<OptimizerKind>& OptimizerKinds() {
  static const auto* const kinds = new std::vector<OptimizerKind>{
      {"sgd",
       {0.01, 0, 0, 1e-8},
       {"momentum", "dampening", "nesterov"},
       Make<nn::Sgd, SgdOf>},
      {"adam",
       {1e-3, 0, 0, 1e-8},
       {"betas", "eps", "amsgrad"},
       Make<nn::Adam, AdamOf>},
      {"adamw",
       {1e-3, 0.01, 0, 1e-8},
       {"betas", "eps", "amsgrad"},
       Make<nn::Adam, AdamWOf>},
      {"lamb",
       {1e-3, 0, 0, 1e-6},
       {"betas", "eps"},
       Make<nn::Lamb, AdaptiveOf<LambOptions>>},
      {"lars",
       {0.01, 0, 0.9, 0},
       {"momentum", "eps", "trust_coefficient"},
       Make<nn::Lars, LarsOf>},
  };
  return *kinds;
}

template <auto... kPath>
constexpr KeyField Optimizer() {
  return Field<&C::optimizer, kPath...>();
}
template <auto kField>
constexpr KeyField Common() {
  return Optimizer<&OptimizerConfig::common, kField>();
}
template <auto kField>
constexpr KeyField Schedule() {
  return Optimizer<&OptimizerConfig::common, &OptimizerOptions::schedule,
                   kField>();
}

constexpr ConfigKey kOptimizerKeys[] = {
    {"optimizer.kind", Optimizer<&OptimizerConfig::kind>(),
     OneOf([] { return KindNames(OptimizerKinds()); }),
     "The optimizer, as torch.optim has it: \"sgd\", \"adam\" or \"adamw\"; or "
     "\"lamb\" or \"lars\", for large batches.",
     "\"adamw\""},
    {"optimizer.lr", Optimizer<&OptimizerConfig::lr>(), kAny,
     "Learning rate; where it is not set, 0.01 for \"sgd\" and \"lars\", 0.001 "
     "for the others.",
     "0.1",
     CopiedTo<&SgdOptions::lr, &AdamOptions::lr, &LambOptions::lr,
              &LarsOptions::lr>},
    {"optimizer.lr_scaling", Optimizer<&OptimizerConfig::lr_scaling>(),
     OneOf([] {
       return Names{"none", "linear", "sqrt"};
     }),
     "What the learning rate is multiplied by: train.global_batch_size / "
     "optimizer.lr_base_batch_size (\"linear\", for \"sgd\"), its square root "
     "(\"sqrt\", for \"adam\"), or 1 (\"none\"). Replicas do not change it.",
     "\"linear\""},
    {"optimizer.lr_base_batch_size",
     Optimizer<&OptimizerConfig::lr_base_batch_size>(), AtMost(kExtentMax),
     "Global batch size that optimizer.lr is for, where optimizer.lr_scaling "
     "is \"linear\" or \"sqrt\".",
     "256"},
    {"optimizer.weight_decay", Optimizer<&OptimizerConfig::weight_decay>(),
     kAny,
     "Factor of the parameters that is added to their gradients; \"adamw\" "
     "shrinks parameters by it instead, by 0.01 where it is not set.",
     "1e-4",
     CopiedTo<&SgdOptions::weight_decay, &AdamOptions::weight_decay,
              &LambOptions::weight_decay, &LarsOptions::weight_decay>},
    {"optimizer.no_decay", Optimizer<&OptimizerConfig::no_decay>(), kAny,
     "Names of parameters without weight decay; * is any run of characters, ? "
     "any one.",
     "[\"*.bias\", \"*norm*\"]"},
    {"optimizer.no_decay_1d", Optimizer<&OptimizerConfig::no_decay_1d>(), kAny,
     "No weight decay on parameters of fewer than two axes: biases, and "
     "weights "
     "of norms.",
     "true"},
    {"optimizer.momentum", Optimizer<&OptimizerConfig::momentum>(), kAny,
     "Momentum of \"sgd\", as in torch.optim.SGD, and of \"lars\", 0.9 where "
     "it is not set.",
     "0.95", CopiedTo<&SgdOptions::momentum, &LarsOptions::momentum>},
    {"optimizer.dampening", Optimizer<&OptimizerConfig::dampening>(), kAny,
     "Share of the gradient kept out of the momentum of \"sgd\".", "0.1",
     CopiedTo<&SgdOptions::dampening>},
    {"optimizer.nesterov", Optimizer<&OptimizerConfig::nesterov>(), kAny,
     "Nesterov's momentum in \"sgd\"; needs momentum and no dampening.", "true",
     CopiedTo<&SgdOptions::nesterov>},
    {"optimizer.betas", Optimizer<&OptimizerConfig::betas>(), kAny,
     "What the averages of gradients and of their squares keep in a step of "
     "\"adam\", \"adamw\" and \"lamb\".",
     "[0.9, 0.95]",
     CopiedTo<&AdamOptions::beta1, &AdamOptions::beta2, &LambOptions::beta1,
              &LambOptions::beta2>},
    {"optimizer.eps", Optimizer<&OptimizerConfig::eps>(), kAny,
     "Added to the divisor of a step; where it is not set, 1e-8 for \"adam\" "
     "and "
     "\"adamw\", 1e-6 for \"lamb\", 0 for \"lars\".",
     "1e-7", CopiedTo<&AdamOptions::eps, &LambOptions::eps, &LarsOptions::eps>},
    {"optimizer.amsgrad", Optimizer<&OptimizerConfig::amsgrad>(), kAny,
     "AMSGrad: \"adam\" and \"adamw\" divide by the largest average of squares "
     "so far.",
     "true", CopiedTo<&AdamOptions::amsgrad>},
    {"optimizer.trust_coefficient",
     Optimizer<&OptimizerConfig::trust_coefficient>(), kAny,
     "How long a step of \"lars\" is, as a part of a parameter's norm.", "0.01",
     CopiedTo<&LarsOptions::trust_coefficient>},
    {"optimizer.clip_grad_norm", Common<&OptimizerOptions::clip_grad_norm>(),
     kAny,
     "The most that the norm of all gradients may be, over all stages, as in "
     "torch.nn.utils.clip_grad_norm_; 0 clips none. Updates wait for all "
     "gradients.",
     "1"},
    {"optimizer.clip_grad_value", Common<&OptimizerOptions::clip_grad_value>(),
     kAny,
     "The most that an element of a gradient may be, either way, as in "
     "torch.nn.utils.clip_grad_value_; 0 clips none.",
     "0.5"},
    {"optimizer.ema_decay", Common<&OptimizerOptions::ema_decay>(), kAny,
     "Keeps averages of the parameters, and of themselves this part in each "
     "step, from the first values on; they are in checkpoints, as states named "
     "ema_value. 0 keeps none.",
     "0.999"},
    {"optimizer.skip_nonfinite", Common<&OptimizerOptions::skip_nonfinite>(),
     kAny,
     "Skips a step whose gradients are not all finite numbers; it does not "
     "count as an update.",
     "true"},
    {"optimizer.stochastic_rounding",
     Common<&OptimizerOptions::stochastic_rounding>(), kAny,
     "With train.precision = \"bf16\", rounds updated parameters up or down at "
     "random, so that small updates count on average, in place of f32 copies "
     "of the parameters: 4 bytes less for each.",
     "true"},
    {"optimizer.schedule", Schedule<&LrSchedule::kind>(),
     OneOf(nn::LrScheduleNames),
     "How the learning rate goes with the steps, as in "
     "torch.optim.lr_scheduler: \"cosine\", \"linear\", \"one_cycle\" and "
     "\"polynomial\" take schedule_steps, \"step\" step_size and gamma, "
     "\"multi_step\" milestones and gamma, \"exponential\" gamma; "
     "\"inverse_sqrt\" is sqrt(w / (w + t)) at step t behind a warm-up of w "
     "steps, as in Transformers. \"one_cycle\" leaves momentum alone "
     "(cycle_momentum=False).",
     "\"cosine\""},
    {"optimizer.schedule_steps", Schedule<&LrSchedule::steps>(),
     AtMost(kCountMax),
     "Steps, behind the warm-up, until \"cosine\", \"linear\" and "
     "\"polynomial\" are at min_factor and \"one_cycle\" at its end; 0 means "
     "the rest of the run (train.steps or train.epochs). Set it for a run that "
     "will go on later with more steps.",
     "10000"},
    {"optimizer.min_factor", Schedule<&LrSchedule::min_factor>(), kAny,
     "Part of the learning rate at the end of \"cosine\", \"linear\" and "
     "\"polynomial\".",
     "0.1"},
    {"optimizer.power", Schedule<&LrSchedule::power>(), kAny,
     "Power of what is left of the steps in \"polynomial\".", "2"},
    {"optimizer.gamma", Schedule<&LrSchedule::gamma>(), kAny,
     "Factor at each turn of \"step\" and \"multi_step\", and at each step of "
     "\"exponential\", which has no default.",
     "0.5"},
    {"optimizer.step_size", Schedule<&LrSchedule::step_size>(),
     AtMost(kCountMax), "Steps between two turns of \"step\", which needs it.",
     "1000"},
    {"optimizer.milestones", Schedule<&LrSchedule::milestones>(), kFromZero,
     "Steps of the turns of \"multi_step\", ascending, which needs them.",
     "[1000, 2000]"},
    {"optimizer.warmup_steps", Schedule<&LrSchedule::warmup_steps>(),
     AtMost(kCountMax),
     "Steps in which the learning rate rises evenly, before the schedule "
     "begins.",
     "500"},
    {"optimizer.warmup_start", Schedule<&LrSchedule::warmup_start>(), kAny,
     "Part of the learning rate that the warm-up begins with.", "0.01"},
};

// Checks that keys are set without which a schedule would do nothing, or would
// make the learning rate vanish within a few steps.
absl::Status CheckScheduleKeys(const LoadedConfig& loaded) {
  using Schedule = LrSchedule::Kind;
  const LrSchedule& schedule = loaded.config.optimizer.common.schedule;
  const auto check = [&](Schedule kind, bool is_set, const std::string& key,
                         const char* example) {
    if (schedule.kind != kind || is_set) return absl::OkStatus();
    return ErrorAt(loaded, {"optimizer.schedule"},
                   absl::StrCat("optimizer.schedule = \"",
                                nn::LrScheduleName(kind), "\" needs ", key,
                                "; set it, to ", example, " for example"));
  };
  TROUPE_RETURN_IF_ERROR(check(Schedule::kStep, schedule.step_size != 0,
                               "optimizer.step_size", "1000"));
  TROUPE_RETURN_IF_ERROR(check(Schedule::kMultiStep,
                               !schedule.milestones.empty(),
                               "optimizer.milestones", "[1000, 2000]"));
  return check(Schedule::kExponential, loaded.IsSet("optimizer.gamma"),
               "optimizer.gamma", "0.999");
}

absl::Status CheckLrScaling(const LoadedConfig& loaded) {
  const OptimizerConfig& config = loaded.config.optimizer;
  const bool scales = config.lr_scaling != "none";
  const bool has_base = config.lr_base_batch_size > 0;
  if (scales == has_base) return absl::OkStatus();
  if (scales) {
    return ErrorAt(
        loaded, {"optimizer.lr_scaling"},
        absl::StrCat("optimizer.lr_scaling = \"", config.lr_scaling,
                     "\" needs optimizer.lr_base_batch_size, the global batch "
                     "size that optimizer.lr is for; set it, to 256 for "
                     "example"));
  }
  return ErrorAt(loaded, {"optimizer.lr_base_batch_size"},
                 "optimizer.lr_base_batch_size is for optimizer.lr_scaling = "
                 "\"linear\" or \"sqrt\"; set that, or remove the key");
}

absl::Status CheckRounding(const LoadedConfig& loaded) {
  const TrainerConfig& config = loaded.config;
  if (!config.optimizer.common.stochastic_rounding ||
      config.job.dtype == nn::DType::kBF16 || config.job.open_dtype) {
    return absl::OkStatus();
  }
  return ErrorAt(loaded, {"optimizer.stochastic_rounding"},
                 "optimizer.stochastic_rounding is for train.precision = "
                 "\"bf16\" or \"auto\"; set that, or remove the key");
}

}  // namespace

absl::Span<const ConfigKey> OptimizerKeys() { return kOptimizerKeys; }

void FillOptimizerDefaults(LoadedConfig& loaded) {
  OptimizerConfig& config = loaded.config.optimizer;
  const auto& defaults = KindNamed(OptimizerKinds(), config.kind).defaults;
  if (!loaded.IsSet("optimizer.lr")) config.lr = defaults.lr;
  if (!loaded.IsSet("optimizer.weight_decay")) {
    config.weight_decay = defaults.weight_decay;
  }
  if (!loaded.IsSet("optimizer.momentum")) config.momentum = defaults.momentum;
  if (!loaded.IsSet("optimizer.eps")) config.eps = defaults.eps;
}

double ScaledLr(const TrainerConfig& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  if (optimizer.lr_scaling == "none") return optimizer.lr;
  const double times = static_cast<double>(config.job.plan.global_batch_size) /
                       static_cast<double>(optimizer.lr_base_batch_size);
  return optimizer.lr *
         (optimizer.lr_scaling == "sqrt" ? std::sqrt(times) : times);
}

void SpanSchedule(std::int64_t run_steps, TrainerConfig& config) {
  LrSchedule& schedule = config.optimizer.common.schedule;
  if (!schedule.HasEnd() || schedule.steps != 0) return;
  schedule.steps = std::max<std::int64_t>(1, run_steps - schedule.warmup_steps);
}

absl::Status CheckOptimizer(const LoadedConfig& loaded) {
  const OptimizerConfig& config = loaded.config.optimizer;
  LoadedConfig defaults;
  defaults.config.optimizer.kind = config.kind;
  FillOptimizerDefaults(defaults);
  TROUPE_RETURN_IF_ERROR(CheckKeysOfKind(loaded, defaults, "optimizer",
                                         OptimizerKinds(), config.kind));
  if (config.betas.size() != 2) {
    return ErrorAt(loaded, {"optimizer.betas"},
                   "optimizer.betas must be two numbers, such as [0.9, 0.999]");
  }
  TROUPE_RETURN_IF_ERROR(CheckScheduleKeys(loaded));
  TROUPE_RETURN_IF_ERROR(CheckLrScaling(loaded));
  TROUPE_RETURN_IF_ERROR(CheckRounding(loaded));
  const OptimizerKind& kind = KindNamed(OptimizerKinds(), config.kind);
  TrainerConfig spanned = loaded.config;
  // The length of an epoch is not known yet.
  const std::int64_t run_steps = spanned.job.steps;
  SpanSchedule(run_steps > 0 ? run_steps : std::int64_t{1} << 50, spanned);
  return AtKeys(loaded, kind.make(spanned).status);
}

actors::OptimizerFactory OptimizerOf(const TrainerConfig& config) {
  return KindNamed(OptimizerKinds(), config.optimizer.kind)
      .make(config)
      .factory;
}

}  // namespace troupe::tools
