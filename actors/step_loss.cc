#include "actors/step_loss.h"

#include <utility>

#include "actors/loss_check.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/ops/loss.h"

namespace troupe::actors {

StepLoss::StepLoss(nn::Kernels& kernels, const Options& options,
                   nn::Tensor scalars)
    : kernels_(&kernels),
      options_(options),
      scalars_(std::move(scalars)),
      stats_(scalars_.FlatView(nn::kLossScalars, {nn::ops::kNumLossStats})) {
  if (kernels.queues() != nullptr) {
    reader_ = std::make_unique<LossReader>(kernels);
  }
}

absl::StatusOr<StepLoss> StepLoss::Create(nn::Kernels& kernels,
                                          const Options& options) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor scalars,
      nn::Tensor::Create({nn::kNumStepScalars}, nn::DType::kF64,
                         kernels.allocator()));
  return StepLoss(kernels, options, std::move(scalars));
}

absl::Status StepLoss::BeginStep(StepKind kind, std::int64_t step, double lr) {
  step_ = step;
  check_ = kind == StepKind::kTrain && options_.stop_on_nan;
  nn::StepScalars values;
  values.lr = lr;
  values.step = static_cast<double>(step);
  values.loss_scale = options_.loss_scale;
  if (reader_ != nullptr) reader_->TakeChecked();  // of a step given up
  TROUPE_RETURN_IF_ERROR(kernels_->SetStepScalars(values, scalars_));
  ready_ = nn::Record(*kernels_, nn::Queue::kCompute);
  return absl::OkStatus();
}

absl::Status StepLoss::Add(int micro_batch, const nn::Tensor& stats) {
  if (check_ && reader_ != nullptr) {
    reader_->Check(micro_batch, stats);
  } else if (check_) {
    TROUPE_RETURN_IF_ERROR(
        CheckFinite(step_, micro_batch, stats.data<double>()));
  }
  TROUPE_RETURN_IF_ERROR(kernels_->Add(stats_, stats, stats_));
  ready_ = nn::Record(*kernels_, nn::Queue::kCompute);
  return absl::OkStatus();
}

std::vector<std::pair<int, nn::Tensor>> StepLoss::TakeChecked() {
  return reader_->TakeChecked();
}

void StepLoss::Check(const std::vector<std::pair<int, nn::Tensor>>& stats) {
  for (const auto& [micro_batch, each] : stats) {
    reader_->Check(micro_batch, each);
  }
}

void StepLoss::AwaitCopied() { reader_->AwaitCopied(); }

comm::Collective StepLoss::Sum() const {
  return comm::AllReduce(comm::ReduceOp::kSum, stats_);
}

absl::Status StepLoss::EndStep() {
  if (reader_ != nullptr) return reader_->EndStep(step_, scalars_, check_);
  const nn::StepScalars& scalars = nn::ScalarsIn(scalars_);
  if (check_) TROUPE_RETURN_IF_ERROR(CheckCounted(step_, scalars));
  ended_ = LossIn(scalars);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LossBits>> StepLoss::Take() {
  if (reader_ != nullptr) return reader_->Take();
  return std::exchange(ended_, std::nullopt);
}

}  // namespace troupe::actors
