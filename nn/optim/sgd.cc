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
  for (const ParameterGroup& group : groups) {
    TROUPE_RETURN_IF_ERROR(group.Validate());
  }
  return schedule.Validate();
}

void Sgd::Attach(ParameterArena& arena) {
  if (options_.momentum != 0) momentum_ = arena.AddState("momentum_buffer");
  if (!options_.groups.empty()) groups_ = GroupRanges(arena, options_.groups);
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
  step.lr = LearningRate(scalars.step);
  step.momentum = options_.momentum;
  step.dampening = options_.dampening;
  step.weight_decay = options_.weight_decay;
  step.nesterov = options_.nesterov;
  step.first_step = scalars.step == 0;
  step.divisor = scalars.divisor * scalars.loss_scale;
  const auto update = [&](const ArenaRange& part, const Tensor& part_grads) {
    Tensor values = arena.View(arena.values(), part);
    Tensor momentum;
    if (momentum_.defined()) momentum = arena.View(momentum_, part);
    return kernels.SgdUpdate(step, part_grads, values, momentum);
  };
  if (options_.groups.empty()) return update(range, grads);
  return groups_.ForEach(range, [&](const ArenaRange& part, int number) {
    static const ParameterGroup& none = *new ParameterGroup;
    const ParameterGroup& group =
        number == GroupRanges::kNoGroup ? none : options_.groups[number];
    step.lr = LearningRate(scalars.step) * group.lr_factor;
    step.weight_decay = group.weight_decay.value_or(options_.weight_decay);
    return update(part,
                  grads.FlatView(part.begin - range.begin, Shape{part.size()}));
  });
}

}  // namespace troupe::nn
