#include "nn/optim/layerwise.h"

#include "base/check.h"
#include "nn/optim/adam.h"
#include "nn/optim/option_checks.h"

namespace troupe::nn {
namespace {

absl::Status NotAttached() {
  return absl::FailedPreconditionError(
      "an optimizer has no buffers for its averages: call Attach() first");
}

// Adds {|first|^2, |second|^2} to `squares`, f64[2].
absl::Status AddBothSquares(Kernels& kernels, const Tensor& first,
                            const Tensor& second, const Tensor& squares) {
  Tensor of_first = squares.FlatView(0, {1});
  Tensor of_second = squares.FlatView(1, {1});
  TROUPE_RETURN_IF_ERROR(kernels.AddSquares(first, of_first));
  return kernels.AddSquares(second, of_second);
}

}  // namespace

absl::Status LambOptions::Validate() const {
  for (const absl::Status& status : {
           CheckNotNegative<&LambOptions::lr>(*this),
           CheckBelowOne<&LambOptions::beta1>(*this),
           CheckBelowOne<&LambOptions::beta2>(*this),
           CheckNotNegative<&LambOptions::eps>(*this),
           CheckNotNegative<&LambOptions::weight_decay>(*this),
       }) {
    if (!status.ok()) return status;
  }
  return common.Validate();
}

void Lamb::FillScalars(std::int64_t step, StepScalars& values) const {
  ArenaOptimizer::FillScalars(step, values);
  SetBiasCorrections(options_.beta1, options_.beta2, step, values);
}

absl::Status Lamb::AttachStates(ParameterArena& arena, DType dtype) {
  TROUPE_ASSIGN_OR_RETURN(exp_avg_, arena.AddState("exp_avg", dtype));
  TROUPE_ASSIGN_OR_RETURN(exp_avg_sq_, arena.AddState("exp_avg_sq", dtype));
  return absl::OkStatus();
}

absl::Status Lamb::SumPart(Kernels& kernels, Part& part) {
  if (!exp_avg_.defined()) return NotAttached();
  AdamRule rule;
  rule.beta1 = options_.beta1;
  rule.beta2 = options_.beta2;
  rule.eps = options_.eps;
  rule.weight_decay = part.weight_decay;
  Tensor exp_avg = part.arena.ViewState(exp_avg_, part.range);
  Tensor exp_avg_sq = part.arena.ViewState(exp_avg_sq_, part.range);
  TROUPE_ASSIGN_OR_RETURN(
      part.direction, Tensor::Create(part.values.shape(), part.values.dtype(),
                                     kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.LambDirection(rule, part.scalars, part.grads,
                                               part.values, exp_avg, exp_avg_sq,
                                               part.direction));
  return AddBothSquares(kernels, part.values, part.direction, part.squares);
}

absl::Status Lamb::UpdatePart(Kernels& kernels, Part& part) {
  return kernels.LambUpdate(part.lr_factor, part.scalars, part.squares,
                            part.direction, part.values);
}

absl::Status LarsOptions::Validate() const {
  for (const absl::Status& status : {
           CheckNotNegative<&LarsOptions::lr>(*this),
           CheckNotNegative<&LarsOptions::momentum>(*this),
           CheckNotNegative<&LarsOptions::weight_decay>(*this),
           CheckNotNegative<&LarsOptions::trust_coefficient>(*this),
           CheckNotNegative<&LarsOptions::eps>(*this),
       }) {
    if (!status.ok()) return status;
  }
  return common.Validate();
}

absl::Status Lars::AttachStates(ParameterArena& arena, DType dtype) {
  if (options_.momentum == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(momentum_, arena.AddState("momentum_buffer", dtype));
  return absl::OkStatus();
}

absl::Status Lars::SumPart(Kernels& kernels, Part& part) {
  return AddBothSquares(kernels, part.values, part.grads, part.squares);
}

absl::Status Lars::UpdatePart(Kernels& kernels, Part& part) {
  if (options_.momentum != 0 && !momentum_.defined()) return NotAttached();
  LarsRule rule;
  rule.lr_factor = part.lr_factor;
  rule.momentum = options_.momentum;
  rule.weight_decay = part.weight_decay;
  rule.trust_coefficient = options_.trust_coefficient;
  rule.eps = options_.eps;
  Tensor momentum;
  if (momentum_.defined())
    momentum = part.arena.ViewState(momentum_, part.range);
  return kernels.LarsUpdate(rule, part.scalars, part.squares, part.grads,
                            part.values, momentum);
}

}  // namespace troupe::nn
