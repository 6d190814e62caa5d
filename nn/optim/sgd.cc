#include "nn/optim/sgd.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/optim/option_checks.h"

namespace troupe::nn {

absl::Status SgdOptions::Validate() const {
  for (const absl::Status& status : {
           CheckNotNegative<&SgdOptions::lr>(*this),
           CheckNotNegative<&SgdOptions::momentum>(*this),
           CheckNotNegative<&SgdOptions::weight_decay>(*this),
           CheckFinite<&SgdOptions::dampening>(*this),
       }) {
    if (!status.ok()) return status;
  }
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return base::FieldError<&SgdOptions::nesterov, &SgdOptions::momentum,
                            &SgdOptions::dampening>(absl::StrCat(
        base::FieldName<&SgdOptions::nesterov>(), " = true must have ",
        base::FieldName<&SgdOptions::momentum>(), " above 0 and ",
        base::FieldName<&SgdOptions::dampening>(), " = 0"));
  }
  return common.Validate();
}

absl::Status Sgd::AttachStates(ParameterArena& arena, DType dtype) {
  if (options_.momentum == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(momentum_, arena.AddState("momentum_buffer", dtype));
  return absl::OkStatus();
}

absl::Status Sgd::UpdatePart(Kernels& kernels, Part& part) {
  if (options_.momentum != 0 && !momentum_.defined()) {
    return absl::FailedPreconditionError(
        absl::StrCat("SGD: momentum is ", options_.momentum,
                     " but there is no buffer for it: call Attach() first"));
  }
  SgdRule rule;
  rule.lr_factor = part.lr_factor;
  rule.momentum = options_.momentum;
  rule.dampening = options_.dampening;
  rule.weight_decay = part.weight_decay;
  rule.nesterov = options_.nesterov;
  Tensor momentum;
  if (momentum_.defined())
    momentum = part.arena.ViewState(momentum_, part.range);
  return kernels.SgdUpdate(rule, part.scalars, part.grads, part.values,
                           momentum);
}

}  // namespace troupe::nn
