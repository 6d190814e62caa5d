#include "actors/chunks/step/loss_check.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/loss_scale.h"
#include "nn/ops/loss.h"

namespace troupe::actors {
namespace {

// Returns the advice for a loss that is not finite.
std::string ToGoOn() {
  return absl::StrCat("set ", base::FieldName<&JobSpec::stop_on_nan>(),
                      " = false to go on");
}

absl::Status CheckScale(std::int64_t step, const nn::StepScalars& scalars,
                        double scale_min) {
  const double next = scalars.loss_scale * nn::kLossScaleBackoff;
  if (scalars.non_finite == 0 || next >= scale_min) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the gradients of step ", step + 1,
      " are not finite with the loss scale ", scalars.loss_scale,
      ", and half of it is below ", base::FieldName<&nn::LossScaleRule::min>(),
      " = ", scale_min,
      "; lower the learning rate, or take a precision with a wider range"));
}

absl::Status CheckCounted(std::int64_t step, const nn::StepScalars& scalars) {
  if (scalars.loss_count > 0 || scalars.summed != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the loss of step ", step + 1,
      " is nan: no target of its global batch counts; change the targets that "
      "the loss ignores, or ",
      ToGoOn()));
}

// Returns the norm that StepScalars::SetClipFactor() computes, without setting
// the factor.
double GradNormIn(const nn::StepScalars& scalars) {
  if (scalars.Divisor() == 0) return 0;
  return std::sqrt(scalars.square_sum) / scalars.Divisor();
}

}  // namespace

absl::Status CheckFinite(std::int64_t step, int micro_batch,
                         const double* stats) {
  if (std::isfinite(stats[nn::ops::kLossSum])) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the loss of step ", step + 1, ", micro-batch ", micro_batch, " is ",
      stats[nn::ops::kLossSum] / stats[nn::ops::kLossCount],
      "; lower the learning rate, or ", ToGoOn()));
}

absl::Status CheckStep(std::int64_t step, const nn::StepScalars& scalars,
                       const StepChecks& checks) {
  if (checks.counted) TROUPE_RETURN_IF_ERROR(CheckCounted(step, scalars));
  return CheckScale(step, scalars, checks.loss_scale_min);
}

LossBits LossIn(const nn::StepScalars& scalars) {
  LossBits loss;
  loss.sum = Bits(scalars.loss_sum);
  loss.count = Bits(scalars.loss_count);
  loss.correct = Bits(scalars.loss_correct);
  loss.skipped = scalars.non_finite != 0 ? 1 : 0;
  loss.scale = Bits(scalars.loss_scale);
  loss.grad_norm = Bits(GradNormIn(scalars));
  return loss;
}

}  // namespace troupe::actors
