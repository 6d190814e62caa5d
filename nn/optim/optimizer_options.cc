#include "nn/optim/optimizer_options.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/optim/option_checks.h"

namespace troupe::nn {

absl::Status OptimizerOptions::Validate() const {
  using Options = OptimizerOptions;
  for (const absl::Status& status : {
           CheckNotNegative<&Options::clip_grad_norm>(*this),
           CheckNotNegative<&Options::clip_grad_value>(*this),
           CheckBelowOne<&Options::ema_decay>(*this),
       }) {
    if (!status.ok()) return status;
  }
  if (clip_grad_norm > 0 && clip_grad_value > 0) {
    return base::FieldError<&Options::clip_grad_value,
                            &Options::clip_grad_norm>(
        absl::StrCat(base::FieldName<&Options::clip_grad_norm>(), " and ",
                     base::FieldName<&Options::clip_grad_value>(),
                     " are both set, and gradients are clipped by one; remove "
                     "the other"));
  }
  if (f32_master && stochastic_rounding) {
    return base::FieldError<&Options::stochastic_rounding,
                            &Options::f32_master>(
        absl::StrCat(base::FieldName<&Options::f32_master>(), " and ",
                     base::FieldName<&Options::stochastic_rounding>(),
                     " are both set, and with f32 values nothing is rounded "
                     "at random; remove one"));
  }
  for (const ParameterGroup& group : groups) {
    TROUPE_RETURN_IF_ERROR(group.Validate());
  }
  return schedule.Validate();
}

}  // namespace troupe::nn
