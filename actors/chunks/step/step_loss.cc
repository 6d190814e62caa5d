#include "actors/chunks/step/step_loss.h"

#include <utility>

#include "actors/chunks/step/loss_check.h"
#include "base/check.h"
#include "nn/ops/loss.h"

namespace troupe::actors {

StepLoss::StepLoss(nn::Kernels& kernels, const Options& options, nn::Tensor own,
                   UpdateScalars updates)
    : kernels_(&kernels),
      options_(options),
      own_(std::move(own)),
      stats_(own_.FlatView(nn::kLossScalars, {nn::ops::kNumLossStats})),
      updates_(std::move(updates)) {
  if (kernels.queues() != nullptr) {
    reader_ = std::make_unique<LossReader>(kernels);
  }
}

absl::StatusOr<StepLoss> StepLoss::Create(nn::Kernels& kernels,
                                          const Options& options) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor own, nn::Tensor::Create({nn::kNumStepScalars}, nn::DType::kF64,
                                         kernels.allocator()));
  TROUPE_ASSIGN_OR_RETURN(
      UpdateScalars updates,
      UpdateScalars::Create(kernels, options.update_queue, own));
  return StepLoss(kernels, options, std::move(own), std::move(updates));
}

absl::Status StepLoss::BeginStep(StepKind kind, std::int64_t step,
                                 nn::StepScalars values) {
  step_ = step;
  train_ = kind == StepKind::kTrain;
  settled_ = false;
  check_ = kind == StepKind::kTrain && options_.stop_on_nan;
  values.step = static_cast<double>(step);
  values.loss_scale = options_.loss_scale;
  values.summed = options_.reduction == nn::ops::LossReduction::kSum ? 1 : 0;
  if (reader_ != nullptr) reader_->TakeChecked();  // left by an aborted step
  updates_.BeginStep();
  TROUPE_RETURN_IF_ERROR(kernels_->SetStepScalars(values, own_));
  if (train_ && options_.scaler != nullptr) {
    TROUPE_RETURN_IF_ERROR(options_.scaler->BeginStep(own_));
  }
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

absl::Status StepLoss::Settle() {
  TROUPE_RETURN_IF_ERROR(PassToUpdates());
  if (settled_ || options_.scaler == nullptr) return absl::OkStatus();
  settled_ = true;
  return options_.scaler->EndStep(updates_.tensor());
}

StepChecks StepLoss::checks() const {
  StepChecks checks;
  checks.counted = check_;
  if (train_ && options_.scaler != nullptr && options_.scaler->is_dynamic()) {
    checks.loss_scale_min = options_.scaler->rule().min;
  }
  return checks;
}

absl::Status StepLoss::EndStep() {
  if (train_) TROUPE_RETURN_IF_ERROR(Settle());
  if (reader_ != nullptr && train_) {
    return reader_->EndStep(step_, options_.update_queue, updates_.tensor(),
                            checks());
  }
  // An evaluation's sums are not reduced, and not copied for updates.
  if (reader_ != nullptr) {
    return reader_->EndStep(step_, nn::Queue::kCompute, own_, checks());
  }
  const nn::StepScalars& scalars = nn::ScalarsIn(updates_.tensor());
  TROUPE_RETURN_IF_ERROR(CheckStep(step_, scalars, checks()));
  ended_ = LossIn(scalars);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LossBits>> StepLoss::Take() {
  if (reader_ != nullptr) return reader_->Take();
  return std::exchange(ended_, std::nullopt);
}

}  // namespace troupe::actors
