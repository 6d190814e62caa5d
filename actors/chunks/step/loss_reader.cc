#include "actors/chunks/step/loss_reader.h"

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<LossReader::Copy> LossReader::ToHost(const nn::Tensor& device) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor host, nn::CopyToHost(kernels_, nn::Queue::kReadBack, device));
  return Copy{device, std::move(host)};
}

absl::StatusOr<nn::Tensor> LossReader::CopyIn(nn::Queue queue,
                                              const nn::Tensor& scalars) {
  const nn::QueueScope scope(kernels_, queue);
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor copy,
                          nn::Tensor::Create(scalars.shape(), scalars.dtype(),
                                             kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Copy(scalars, copy));
  return copy;
}

absl::Status LossReader::EndStep(std::int64_t step, nn::Queue queue,
                                 const nn::Tensor& scalars,
                                 const StepChecks& checks) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor still, CopyIn(queue, scalars));
  nn::Wait(kernels_, nn::Queue::kReadBack, nn::Record(kernels_, queue));
  Step ended;
  ended.step = step;
  ended.checks = checks;
  TROUPE_ASSIGN_OR_RETURN(ended.scalars, ToHost(still));
  for (const auto& [micro_batch, stats] : kept_) {
    TROUPE_ASSIGN_OR_RETURN(Copy copy, ToHost(stats));
    ended.stats.emplace_back(micro_batch, std::move(copy));
  }
  kept_.clear();
  ended.copied = nn::Record(kernels_, nn::Queue::kReadBack);
  steps_.push_back(std::move(ended));
  return absl::OkStatus();
}

void LossReader::AwaitCopied() {
  if (steps_.empty()) return;
  nn::Wait(kernels_, nn::Queue::kCompute, steps_.back().copied);
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
  TROUPE_RETURN_IF_ERROR(CheckStep(step.step, scalars, step.checks));
  return LossIn(scalars);
}

}  // namespace troupe::actors
