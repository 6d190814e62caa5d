#include "nn/optim/sgd.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::nn {

absl::Status SgdOptions::Validate() const {
  const std::pair<const char*, double> values[] = {
      {"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}};
  for (const auto& [name, value] : values) {
    if (!(value >= 0) || std::isinf(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("SGD: ", name, " is ", value, ", must be at least 0"));
    }
  }
  if (!std::isfinite(dampening)) {
    return absl::InvalidArgumentError(
        absl::StrCat("SGD: dampening is ", dampening, ", must be finite"));
  }
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return absl::InvalidArgumentError(
        "SGD: nesterov needs momentum above 0 and dampening 0");
  }
  return absl::OkStatus();
}

void Sgd::Attach(ParameterArena& arena) {
  if (options_.momentum != 0) momentum_ = arena.AddState("momentum_buffer");
}

absl::Status Sgd::UpdateRange(Kernels& kernels, const StepScalars& scalars,
                              ParameterArena& arena, const ArenaRange& range,
                              const Tensor& grads) {
  if (options_.momentum != 0 && !momentum_.defined()) {
    return absl::FailedPreconditionError(
        absl::StrCat("SGD: momentum is ", options_.momentum,
                     " but there is no buffer for it: call Attach() first"));
  }
  SgdStep step;
  step.lr = options_.lr;
  step.momentum = options_.momentum;
  step.dampening = options_.dampening;
  step.weight_decay = options_.weight_decay;
  step.nesterov = options_.nesterov;
  step.first_step = scalars.step == 0;
  step.divisor = scalars.divisor;
  Tensor values = arena.View(arena.values(), range);
  Tensor momentum;
  if (momentum_.defined()) momentum = arena.View(momentum_, range);
  return kernels.SgdUpdate(step, grads, values, momentum);
}

}  // namespace troupe::nn
