#include "tools/trainer/config/optimizer_keys.h"

#include <string>
#include <vector>

#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/loss_kinds.h"
#include "tools/trainer/config/optimizer_kinds.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using nn::AdamOptions;
using nn::LambOptions;
using nn::LarsOptions;
using nn::LrSchedule;
using nn::OptimizerOptions;
using nn::SgdOptions;

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

constexpr ConfigKey kKeys[] = {
    {"loss.kind", Field<&C::loss, &LossConfig::kind>(), OneOf(LossKinds),
     "The loss: \"cross_entropy\" of samples with classes; of targets of "
     "numbers "
     "\"mse\" (squared error), \"l1\", \"huber\", \"smooth_l1\", or \"bce\" "
     "(binary "
     "cross entropy with logits). \"auto\" is the first or the second of them.",
     "\"cross_entropy\""},
    {"loss.reduction", Field<&C::loss, &LossConfig::reduction>(),
     OneOf(LossReductions),
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

    {"optimizer.kind", Optimizer<&OptimizerConfig::kind>(),
     OneOf(OptimizerKinds),
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
     OneOf(LrScalings),
     "What the learning rate is multiplied by: mesh.dp (\"linear\"), its "
     "square "
     "root (\"sqrt\"), or 1 (\"none\").",
     "\"linear\""},
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
     "it "
     "is not set.",
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
     "step; they are in checkpoints, as states named ema_value. 0 keeps none.",
     "0.999"},
    {"optimizer.skip_nonfinite", Common<&OptimizerOptions::skip_nonfinite>(),
     kAny, "Skips a step whose gradients are not all finite numbers.", "true"},
    {"optimizer.schedule", Schedule<&LrSchedule::kind>(),
     OneOf(nn::LrScheduleNames),
     "How the learning rate goes with the steps, as in "
     "torch.optim.lr_scheduler: \"cosine\", \"linear\" and \"one_cycle\" and "
     "\"polynomial\" take schedule_steps, \"step\" step_size, \"multi_step\" "
     "milestones.",
     "\"cosine\""},
    {"optimizer.schedule_steps", Schedule<&LrSchedule::steps>(),
     AtMost(kCountMax),
     "Steps, behind the warm-up, until \"cosine\", \"linear\" and "
     "\"polynomial\" "
     "are at min_factor and \"one_cycle\" at its end.",
     "10000"},
    {"optimizer.min_factor", Schedule<&LrSchedule::min_factor>(), kAny,
     "Part of the learning rate at the end of \"cosine\", \"linear\" and "
     "\"polynomial\".",
     "0.1"},
    {"optimizer.power", Schedule<&LrSchedule::power>(), kAny,
     "Power of what is left of the steps in \"polynomial\".", "2"},
    {"optimizer.gamma", Schedule<&LrSchedule::gamma>(), kAny,
     "Factor at each turn of \"step\" and \"multi_step\", and at each step of "
     "\"exponential\".",
     "0.5"},
    {"optimizer.step_size", Schedule<&LrSchedule::step_size>(),
     AtMost(kCountMax), "Steps between two turns of \"step\".", "1000"},
    {"optimizer.milestones", Schedule<&LrSchedule::milestones>(), kFromZero,
     "Steps of the turns of \"multi_step\", ascending.", "[1000, 2000]"},
    {"optimizer.warmup_steps", Schedule<&LrSchedule::warmup_steps>(),
     AtMost(kCountMax),
     "Steps in which the learning rate rises evenly, before the schedule "
     "begins.",
     "500"},
    {"optimizer.warmup_start", Schedule<&LrSchedule::warmup_start>(), kAny,
     "Part of the learning rate that the warm-up begins with.", "0.01"},
};

}  // namespace

absl::Span<const ConfigKey> LossAndOptimizerKeys() { return kKeys; }

}  // namespace troupe::tools
