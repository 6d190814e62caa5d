#include "actors/loss_reader.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/device_queues.h"
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

absl::StatusOr<LossReader::Copy> LossReader::ToHost(const nn::Tensor& device) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor host,
                          nn::CopyToHost(kernels_, nn::Queue::kCopy, device));
  return Copy{device, std::move(host)};
}

absl::Status LossReader::EndStep(std::int64_t step, const nn::Tensor& scalars,
                                 bool check) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor still,
                          nn::Tensor::Create(scalars.shape(), scalars.dtype(),
                                             kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Copy(scalars, still));
  nn::Wait(kernels_, nn::Queue::kCopy,
           nn::Record(kernels_, nn::Queue::kCompute));
  Step ended;
  ended.step = step;
  ended.check = check;
  TROUPE_ASSIGN_OR_RETURN(ended.scalars, ToHost(still));
  for (const auto& [micro_batch, stats] : kept_) {
    TROUPE_ASSIGN_OR_RETURN(Copy copy, ToHost(stats));
    ended.stats.emplace_back(micro_batch, std::move(copy));
  }
  kept_.clear();
  ended.copied = nn::Record(kernels_, nn::Queue::kCopy);
  steps_.push_back(std::move(ended));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LossBits>> LossReader::Take() {
  if (steps_.empty() || !steps_.front().copied.ready()) return std::nullopt;
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  TROUPE_RETURN_IF_ERROR(step.copied.status());
  for (const auto& [micro_batch, stats] : step.stats) {
    TROUPE_RETURN_IF_ERROR(
        CheckFinite(step.step, micro_batch, stats.host.data<double>()));
  }
  const nn::StepScalars& scalars = nn::ScalarsIn(step.scalars.host);
  if (step.check) TROUPE_RETURN_IF_ERROR(CheckCounted(step.step, scalars));
  return LossIn(scalars);
}

}  // namespace troupe::actors
