#include "nn/optim/adam.h"

#include <cmath>

#include "base/check.h"
#include "nn/optim/option_checks.h"

namespace troupe::nn {

absl::Status AdamOptions::Validate() const {
  for (const absl::Status& status : {
           CheckNotNegative<&AdamOptions::lr>(*this),
           CheckBelowOne<&AdamOptions::beta1>(*this),
           CheckBelowOne<&AdamOptions::beta2>(*this),
           CheckNotNegative<&AdamOptions::eps>(*this),
           CheckNotNegative<&AdamOptions::weight_decay>(*this),
       }) {
    if (!status.ok()) return status;
  }
  return common.Validate();
}

AdamOptions AdamWDefaults() {
  AdamOptions options;
  options.weight_decay = 0.01;
  options.decoupled_weight_decay = true;
  return options;
}

void SetBiasCorrections(double beta1, double beta2, std::int64_t step,
                        StepScalars& values) {
  const double count = static_cast<double>(step + 1);
  values.beta1 = beta1;
  values.beta2 = beta2;
  values.bias_correction1 = 1 - std::pow(beta1, count);
  values.bias_correction2 = 1 - std::pow(beta2, count);
}

void Adam::FillScalars(std::int64_t step, StepScalars& values) const {
  ArenaOptimizer::FillScalars(step, values);
  SetBiasCorrections(options_.beta1, options_.beta2, step, values);
}

absl::Status Adam::AttachStates(ParameterArena& arena, DType dtype) {
  TROUPE_ASSIGN_OR_RETURN(exp_avg_, arena.AddState("exp_avg", dtype));
  TROUPE_ASSIGN_OR_RETURN(exp_avg_sq_, arena.AddState("exp_avg_sq", dtype));
  if (!options_.amsgrad) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(max_exp_avg_sq_,
                          arena.AddState("max_exp_avg_sq", dtype));
  return absl::OkStatus();
}

absl::Status Adam::UpdatePart(Kernels& kernels, Part& part) {
  if (!exp_avg_.defined()) {
    return absl::FailedPreconditionError(
        "Adam: there are no buffers for its averages: call Attach() first");
  }
  AdamRule rule;
  rule.lr_factor = part.lr_factor;
  rule.beta1 = options_.beta1;
  rule.beta2 = options_.beta2;
  rule.eps = options_.eps;
  rule.weight_decay = part.weight_decay;
  rule.decoupled = options_.decoupled_weight_decay;
  rule.amsgrad = options_.amsgrad;
  Tensor exp_avg = part.arena.ViewState(exp_avg_, part.range);
  Tensor exp_avg_sq = part.arena.ViewState(exp_avg_sq_, part.range);
  Tensor largest;
  if (options_.amsgrad) {
    largest = part.arena.ViewState(max_exp_avg_sq_, part.range);
  }
  return kernels.AdamUpdate(rule, part.scalars, part.grads, part.values,
                            exp_avg, exp_avg_sq, largest);
}

}  // namespace troupe::nn
