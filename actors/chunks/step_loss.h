// The losses of one step: each micro-batch adds the sum, count and number
// correct of its samples to the step's scalars, one all-reduce adds up the
// ranks, and updates divide by the count, unless the loss is a sum.
//
//   TROUPE_ASSIGN_OR_RETURN(StepLoss loss, StepLoss::Create(kernels, options));
//   loss.BeginStep(StepKind::kTrain, step, chunk.ScalarsOf(step));
//   loss.Add(/*micro_batch=*/0, stats);
//   comm->RunInline(loss.Sum(), timeout);
//   Update(loss.scalars());
//   loss.EndStep();
//   TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, loss.Take());
//
// No step waits for its own loss: on a device that works later than it is told,
// the numbers come to the host when they are there (loss_reader.h). Where such
// a device updates in another queue than kCompute, updates read a copy of the
// scalars, which that queue makes behind the all-reduce: the next step may
// write to its scalars before this one's updates have read them.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_LOSS_H_
#define ACTORS_CHUNKS_STEP_LOSS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/loss_reader.h"
#include "actors/chunks/loss_scaler.h"
#include "actors/chunks/step_types.h"
#include "comm/communicator.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/step_scalars.h"
#include "nn/ops/loss.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StepLoss {
 public:
  struct Options {
    bool stop_on_nan = true;
    double loss_scale = 1;  // what gradients are multiplied by
    // Where updates go on a device with queues.
    nn::Queue update_queue = nn::Queue::kCompute;
    // Chooses the scales of steps, and outlives this; null: all have
    // loss_scale.
    LossScaler* scaler = nullptr;
    nn::ops::LossReduction reduction = nn::ops::LossReduction::kMean;
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the scalars.
  static absl::StatusOr<StepLoss> Create(nn::Kernels& kernels,
                                         const Options& options);

  // `values`: the optimizer's, where the step trains.
  absl::Status BeginStep(StepKind kind, std::int64_t step,
                         nn::StepScalars values);
  // `stats`: what a loss returns, f64[kNumLossStats] (nn/ops/loss.h).
  //   kFailedPrecondition: a training loss is no finite number, and the job
  //   stops at that. Where the host does not see it yet, Take() says so.
  absl::Status Add(int micro_batch, const nn::Tensor& stats);
  // Add() of a recorded step is a part of what is launched. The statistics that
  // it was given, by micro-batch, with which each launch calls Check().
  std::vector<std::pair<int, nn::Tensor>> TakeChecked();
  void Check(const std::vector<std::pair<int, nn::Tensor>>& stats);
  // What the device is given next may write to the statistics of before.
  void AwaitCopied();
  // The all-reduce over all ranks of the job, in place; its range is ready when
  // ready() is done, which waits for nothing that came later.
  comm::Collective Sum() const;
  const base::Event& ready() const { return ready_; }
  // `done`: when its result is there.
  void NoteReduced(const base::Event& done) { reduced_ = done; }

  // Before the first update of a step: what the queue of updates is given from
  // here on finds the sums in scalars(). Nothing where that was done.
  absl::Status PassToUpdates();
  // The all-reduce over all ranks of the job of what looking at the gradients
  // has found (StepScalars::non_finite, square_sum), in place. `adds` is false
  // on ranks whose findings another one has too: they count as 0 from here on.
  // Behind PassToUpdates(); its range is ready when found_ready() is done.
  absl::StatusOr<comm::Collective> SumFindings(bool adds);
  const base::Event& found_ready() const { return found_ready_; }
  // `done`: when its result is there. What the queue of updates is given from
  // here on finds it in scalars().
  void NoteFindingsReduced(const base::Event& done);

  // Behind the findings, before the end of a training step: the next step's
  // scale. Nothing where that was done.
  absl::Status Settle();
  // A launch has done what PassToUpdates() and Settle() would.
  void NoteLaunched() { passed_ = settled_ = true; }

  // What updates read (nn/kernels/step_scalars.h): the count is that of the
  // ranks added up so far.
  const nn::Tensor& scalars() const { return scalars_; }

  // All work that the step gives the device is enqueued.
  //   kFailedPrecondition: no target of a training step counts, so that a mean
  //   is no number, and the job stops at that; or its scale falls below the
  //   least one. Where the host does not see it yet, Take() says so.
  absl::Status EndStep();
  // The losses of the first step that ended and was not taken yet; none where
  // they are not there.
  //   kFailedPrecondition: as Add() and EndStep(). Or what work of the device
  //   failed with.
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  StepLoss(nn::Kernels& kernels, const Options& options, nn::Tensor own,
           nn::Tensor scalars);
  StepChecks checks() const;
  bool apart() const { return options_.update_queue != nn::Queue::kCompute; }

  nn::Kernels* kernels_;
  Options options_;
  nn::Tensor own_, stats_;  // what kCompute writes; stats_: the loss's part
  nn::Tensor scalars_;      // own_, or the copy for updates
  std::int64_t step_ = 0;
  bool train_ = false;
  bool check_ = false;   // whether the job stops at a loss that is no number
  bool passed_ = false;  // scalars_ have the sums of this step
  bool settled_ = false;
  base::Event ready_, reduced_, found_ready_;
  base::Event copied_;  // when own_ may be written again
  std::optional<LossBits> ended_;
  // Where the device works later than it is told.
  std::unique_ptr<LossReader> reader_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_LOSS_H_
