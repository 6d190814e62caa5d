// The losses of one step: each micro-batch adds the sum, count and number
// correct of its samples to the step's scalars, one all-reduce adds up the
// ranks, and updates divide by the count, unless the loss is a sum.
//
//   TROUPE_ASSIGN_OR_RETURN(StepLoss loss, StepLoss::Create(kernels, options));
//   loss.BeginStep(StepKind::kTrain, step, chunk.parameters().ScalarsOf(step));
//   loss.Add(/*micro_batch=*/0, stats);
//   comm->RunInline(loss.Sum(), timeout);
//   Update(loss.scalars());
//   loss.EndStep();
//   TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, loss.Take());
//
// No step waits for its own loss: on a device with queues, the host reads the
// numbers once they are copied (loss_reader.h). Updates in another queue than
// kCompute read a copy of the scalars (update_scalars.h).
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_STEP_LOSS_H_
#define ACTORS_CHUNKS_STEP_STEP_LOSS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/loss_reader.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/step/step_types.h"
#include "actors/chunks/step/update_scalars.h"
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
    double loss_scale = 1;  // factor of all gradients
    // Queue of updates on a device with queues.
    nn::Queue update_queue = nn::Queue::kCompute;
    // Chooses the loss scale of each step, and outlives this; null: all steps
    // have loss_scale.
    LossScaler* scaler = nullptr;
    nn::ops::LossReduction reduction = nn::ops::LossReduction::kMean;
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the scalars.
  static absl::StatusOr<StepLoss> Create(nn::Kernels& kernels,
                                         const Options& options);

  // Starts a step and sets its scalars. `values`: those of the optimizer, if
  // the step trains.
  absl::Status BeginStep(StepKind kind, std::int64_t step,
                         nn::StepScalars values);
  // Adds the loss of a micro-batch. `stats`: the result of a loss function,
  // f64[kNumLossStats] (nn/ops/loss.h).
  //   kFailedPrecondition: a training loss is not finite, and the job stops at
  //   that. On a device with queues, Take() returns this error.
  absl::Status Add(int micro_batch, const nn::Tensor& stats);
  // Returns the statistics that Add() was given in a recorded step, by
  // micro-batch. Add() is a part of the graph, so each launch of it is followed
  // by Check() with these.
  std::vector<std::pair<int, nn::Tensor>> TakeChecked();
  void Check(const std::vector<std::pair<int, nn::Tensor>>& stats);
  // Makes kCompute wait until the last step's statistics are copied, so that
  // its later work may overwrite them.
  void AwaitCopied();
  // Returns the all-reduce over all ranks of the job, in place. Its range may
  // be read once ready() has completed, which depends on no later work.
  comm::Collective Sum() const;
  const base::Event& ready() const { return ready_; }
  // Stores `done`, the event that completes with the result of Sum().
  void NoteReduced(const base::Event& done) { updates_.NoteReduced(done); }

  // Makes later work of the queue of updates find the sums in scalars(). Called
  // before the first update of a step; further calls in a step do nothing.
  absl::Status PassToUpdates() { return updates_.Pass(); }
  // Returns the all-reduce, over all ranks of the job and in place, of the
  // findings in the gradients (StepScalars::non_finite, square_sum). `adds` is
  // false on a rank with the same findings as another: it adds 0. Call it after
  // PassToUpdates(). Its range may be read once found_ready() has completed.
  absl::StatusOr<comm::Collective> SumFindings(bool adds) {
    return updates_.SumFindings(adds);
  }
  const base::Event& found_ready() const { return updates_.found_ready(); }
  // Makes later work of the queue of updates wait for `done`, the event that
  // completes with the result of SumFindings() in scalars().
  void NoteFindingsReduced(const base::Event& done) {
    updates_.NoteFindingsReduced(done);
  }

  // Computes the next step's loss scale. Called in a training step, once the
  // findings are reduced; further calls in a step do nothing.
  absl::Status Settle();
  // Records that a launch of a graph included PassToUpdates() and Settle().
  void NoteLaunched() {
    updates_.NotePassed();
    settled_ = true;
  }

  // Returns the scalars that updates read (nn/kernels/step_scalars.h). Their
  // count is that of this rank, and of all ranks once Sum() has ended.
  const nn::Tensor& scalars() const { return updates_.tensor(); }

  // Ends a step, once all its work is enqueued.
  //   kFailedPrecondition: no target of a training step counts, so that a mean
  //   is NaN, and the job stops at that; or its loss scale would fall below
  //   LossScaleRule::min. On a device with queues, Take() returns this error.
  absl::Status EndStep();
  // Returns the losses of the first step that has ended and was not taken; none
  // if they are not on the host yet.
  //   kFailedPrecondition: see Add() and EndStep(). Also returns errors of the
  //   device's work.
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  StepLoss(nn::Kernels& kernels, const Options& options, nn::Tensor own,
           UpdateScalars updates);
  StepChecks checks() const;

  nn::Kernels* kernels_;
  Options options_;
  nn::Tensor own_, stats_;  // written by kCompute; stats_: the loss in own_
  UpdateScalars updates_;
  std::int64_t step_ = 0;
  bool train_ = false;
  bool check_ = false;  // whether the job stops at a loss that is not finite
  bool settled_ = false;
  base::Event ready_;
  std::optional<LossBits> ended_;
  // Null on a device without queues.
  std::unique_ptr<LossReader> reader_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_STEP_LOSS_H_
