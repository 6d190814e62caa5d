#include "actors/step_loss.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/ops/loss.h"

namespace troupe::actors {

absl::StatusOr<StepLoss> StepLoss::Create(nn::Allocator& allocator,
                                          bool stop_on_nan, double loss_scale) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor stats,
      nn::Tensor::Create({nn::ops::kNumLossStats}, nn::DType::kF64, allocator));
  std::memset(stats.raw(), 0, stats.bytes());
  return StepLoss(std::move(stats), stop_on_nan, loss_scale);
}

void StepLoss::BeginStep(StepKind kind, std::int64_t step) {
  kind_ = kind;
  step_ = step;
  std::memset(stats_.raw(), 0, stats_.bytes());
}

absl::Status StepLoss::Add(int micro_batch, const nn::Tensor& stats) {
  const double* one = stats.data<double>();
  if (kind_ == StepKind::kTrain && stop_on_nan_ &&
      !std::isfinite(one[nn::ops::kLossSum])) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loss of step ", step_ + 1, ", micro-batch ", micro_batch, " is ",
        one[nn::ops::kLossSum] / one[nn::ops::kLossCount],
        "; lower optimizer.lr, or set train.stop_on_nan=false to go on"));
  }
  double* all = stats_.data<double>();
  for (int i = 0; i < nn::ops::kNumLossStats; ++i) all[i] += one[i];
  return absl::OkStatus();
}

comm::Collective StepLoss::Sum() const {
  return comm::AllReduce(comm::ReduceOp::kSum, stats_);
}

nn::StepScalars StepLoss::scalars() const {
  nn::StepScalars scalars;
  scalars.step = step_;
  scalars.loss_scale = loss_scale_;
  scalars.divisor = stats_.data<double>()[nn::ops::kLossCount];
  return scalars;
}

LossBits StepLoss::bits() const {
  const double* stats = stats_.data<double>();
  return {Bits(stats[nn::ops::kLossSum]), Bits(stats[nn::ops::kLossCount]),
          Bits(stats[nn::ops::kLossCorrect])};
}

}  // namespace troupe::actors
