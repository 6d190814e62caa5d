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
  DType state = arena.values().dtype();
  if (options_.f32_master && SizeOf(state) < SizeOf(DType::kF32)) {
    state = DType::kF32;
    master_ = arena.AddState("master_value", state);
  }
  if (options_.momentum != 0) {
    momentum_ = arena.AddState("momentum_buffer", state);
  }
  if (!options_.groups.empty()) groups_ = GroupRanges(arena, options_.groups);
}

absl::Status Sgd::Begin(Kernels& kernels, ParameterArena& arena) {
  return master_.defined() ? kernels.Copy(arena.values(), master_)
                           : absl::OkStatus();
}

absl::StatusOr<bool> Sgd::AcceptsStep(Kernels& kernels,
                                      const ParameterArena& arena) {
  if (!options_.skip_nonfinite) return true;
  Tensor count = Tensor::Zeros({1}, DType::kF64, kernels.allocator());
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    TROUPE_RETURN_IF_ERROR(
        kernels.CountNonFinite(arena.BucketGrads(bucket), count));
  }
  return count.data<double>()[0] == 0;
}

// One kernel call; where there are master values, a conversion behind it.
absl::Status Sgd::UpdatePart(Kernels& kernels, const SgdStep& step,
                             ParameterArena& arena, const ArenaRange& range,
                             const Tensor& grads) {
  Tensor values = arena.View(arena.values(), range);
  Tensor updated = master_.defined() ? arena.View(master_, range) : values;
  Tensor momentum;
  if (momentum_.defined()) momentum = arena.View(momentum_, range);
  Tensor converted;
  if (grads.dtype() != updated.dtype()) {
    converted =
        Tensor::Empty(grads.shape(), updated.dtype(), kernels.allocator());
    TROUPE_RETURN_IF_ERROR(kernels.Copy(grads, converted));
  }
  TROUPE_RETURN_IF_ERROR(kernels.SgdUpdate(
      step, converted.defined() ? converted : grads, updated, momentum));
  return master_.defined() ? kernels.Copy(updated, values) : absl::OkStatus();
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
  if (options_.groups.empty()) {
    return UpdatePart(kernels, step, arena, range, grads);
  }
  return groups_.ForEach(range, [&](const ArenaRange& part, int number) {
    static const ParameterGroup& none = *new ParameterGroup;
    const ParameterGroup& group =
        number == GroupRanges::kNoGroup ? none : options_.groups[number];
    step.lr = LearningRate(scalars.step) * group.lr_factor;
    step.weight_decay = group.weight_decay.value_or(options_.weight_decay);
    return UpdatePart(
        kernels, step, arena, part,
        grads.FlatView(part.begin - range.begin, Shape{part.size()}));
  });
}

}  // namespace troupe::nn
