#include "actors/loss_check.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/job_spec.h"
#include "base/field_error.h"
#include "nn/ops/loss.h"

namespace troupe::actors {
namespace {

// What to do about a loss that is no number.
std::string ToGoOn() {
  return absl::StrCat("set ", base::FieldName<&JobSpec::stop_on_nan>(),
                      " = false to go on");
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

absl::Status CheckCounted(std::int64_t step, const nn::StepScalars& scalars) {
  if (scalars.loss_count > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the loss of step ", step + 1,
      " is nan: no target of its global batch counts; change the targets that "
      "the loss ignores, or ",
      ToGoOn()));
}

LossBits LossIn(const nn::StepScalars& scalars) {
  LossBits loss;
  loss.sum = Bits(scalars.loss_sum);
  loss.count = Bits(scalars.loss_count);
  loss.correct = Bits(scalars.loss_correct);
  loss.skipped = scalars.non_finite != 0 ? 1 : 0;
  return loss;
}

}  // namespace troupe::actors
