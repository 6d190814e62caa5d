// The losses of one step: each micro-batch adds the sum, count and number
// correct of its samples, one all-reduce adds up the ranks, and the update
// divides by the count.
//
//   StepLoss loss = *StepLoss::Create(allocator, /*stop_on_nan=*/true);
//   loss.BeginStep(StepKind::kTrain, step);
//   TROUPE_RETURN_IF_ERROR(loss.Add(/*micro_batch=*/0, stats));
//   comm.RunInline(loss.Sum(), timeout);
//   loss.scalars().divisor;                   // counted samples of the step
//
// Threads: one at a time.

#ifndef ACTORS_STEP_LOSS_H_
#define ACTORS_STEP_LOSS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/step_types.h"
#include "comm/communicator.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StepLoss {
 public:
  // `loss_scale`: what gradients are multiplied by, for scalars().
  //   kResourceExhausted: there is no memory for three numbers.
  static absl::StatusOr<StepLoss> Create(nn::Allocator& allocator,
                                         bool stop_on_nan,
                                         double loss_scale = 1);

  void BeginStep(StepKind kind, std::int64_t step);
  // `stats`: what a loss returns, f64[kNumLossStats] (nn/ops/loss.h).
  //   kFailedPrecondition: a training loss is no finite number, and the job
  //   stops at that.
  absl::Status Add(int micro_batch, const nn::Tensor& stats);
  // The all-reduce over all ranks of the job, in place.
  comm::Collective Sum() const;

  // What the update reads: the divisor is that of the ranks added up so far.
  nn::StepScalars scalars() const;
  LossBits bits() const;

 private:
  StepLoss(nn::Tensor stats, bool stop_on_nan, double loss_scale)
      : stop_on_nan_(stop_on_nan),
        loss_scale_(loss_scale),
        stats_(std::move(stats)) {}

  bool stop_on_nan_;
  double loss_scale_;
  StepKind kind_ = StepKind::kTrain;
  std::int64_t step_ = 0;
  nn::Tensor stats_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STEP_LOSS_H_
