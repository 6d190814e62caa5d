// The step engine: walks one rank's table of actions, on the compute strand. It
// uses tensors and tables, and no actors: its owner runs the collectives and
// sends the transfers (EngineHost).
//
//   TROUPE_ASSIGN_OR_RETURN(auto runner,
//                           StepRunner::Create(setup, &host, &wait));
//   for (StepBatches& batches : steps) {
//     TROUPE_RETURN_IF_ERROR(
//         runner->RunStep(StepKind::kTrain, step++, std::move(batches)));
//     TROUPE_ASSIGN_OR_RETURN(auto loss, runner->TakeLoss());
//   }
//
// A step blocks in StrandWait (strand_wait.h) until tensors of other stages
// arrive or collectives end. Meanwhile, from another stack of the same thread,
// its owner calls CollectiveDone() and Deliver().
//
// This class is the facade of the parts (owned_parts.h). The Dispatcher starts
// an action (dispatcher.h) when the rows of pipeline/table/action_rules.h allow
// it; a StepAction for each kind (actions/) runs it; a Chunk computes
// (chunk.h), a Reducer runs collectives (reducer.h), BucketEvents order the
// queues of a device (bucket_events.h), a StepRecorder records steps if the
// device has graphs (recording/).
//
// Across steps (Plan::cross_step) RunStep() returns when nothing is left of the
// step but collectives under way and the updates that follow them. The step
// then ends with EngineHost::StepDone().
//
// On a device with queues RunStep() returns when the step's work is enqueued. A
// rank with peers enqueues its updates in the queue of the reductions, and the
// next step's forward waits for them bucket by bucket; an evaluation and a
// snapshot wait for all.
//
// Errors: the first one ends the runner; it names step, micro-batch and module.
// Threads: one at a time. The owner calls only while the step waits.

#ifndef ACTORS_ENGINE_STEP_RUNNER_H_
#define ACTORS_ENGINE_STEP_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/dispatcher.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/owned_parts.h"
#include "actors/engine/recording/step_recorder.h"
#include "actors/engine/step_in_flight.h"
#include "base/event.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StepRunner {
 public:
  using Host = EngineHost;
  using Setup = EngineSetup;

  // All pointers outlive the runner.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(const Setup& setup,
                                                            Host* host,
                                                            StrandWait* wait);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Runs a step to its end, or until only collectives and updates are left.
  // `batches`: one per micro-batch of the table.
  //   kInvalidArgument: for a transfer that arrived early, as of Deliver().
  absl::Status RunStep(StepKind kind, std::int64_t step, StepBatches batches);
  // Runs one action of a step's tail, while the owner has no next step yet.
  // Returns false if nothing may run now.
  absl::StatusOr<bool> AdvanceTail() { return dispatcher_->AdvanceEarlier(); }
  // Runs a step's tail to its end, and waits for its collectives.
  absl::Status FinishTail() { return dispatcher_->FinishEarlier(); }
  // Ends the collective of an action. Its result may be read once `done` has
  // completed; on a device with queues, the queues wait for that.
  absl::Status CollectiveDone(std::int64_t step, int action,
                              const base::Event& done = {}) {
    return dispatcher_->CollectiveDone(step, action, done);
  }
  // Returns `why`, the error of the collective of action `action`. Step and
  // bucket are added if it is an error of the group's ranks (CollectiveError).
  absl::Status CollectiveFailed(std::int64_t step, int action,
                                const absl::Status& why) const {
    return dispatcher_->CollectiveFailed(step, action, why);
  }
  // Delivers a tensor of another stage. It is kept if its step has not begun.
  //   kInvalidArgument: this rank's step does not receive this tensor, or has
  //   received it already.
  absl::Status Deliver(const Transfer& transfer) {
    return parts_.inbox().Deliver(transfer, *dispatcher_);
  }

  // Returns the next losses, the same as StepLoss::Take(), in the order of
  // steps: of training over all ranks, of evaluation over this rank.
  absl::StatusOr<std::optional<LossBits>> TakeLoss() { return losses_->Take(); }
  // Returns the model's output of a prediction, in host memory, on the rank of
  // the model's last chunk. Call it after TakeLoss() of the prediction.
  nn::Tensor TakeOutput() { return parts_->outputs.Take(); }
  bool has_outputs() const { return parts_->chunks.back()->is_last(); }
  std::int64_t step() const { return dispatcher_->present().step; }
  // Returns the step of a collective, in Host::Launch(): the present one, or
  // the one whose tail is left.
  std::int64_t launched_step() const { return dispatcher_->beginning_step(); }
  StepKind kind() const { return dispatcher_->present().kind; }
  // Returns the actions that have not ended, for errors of a stalled step.
  std::string Unfinished() const { return dispatcher_->Unfinished(); }

  // Brings together what the replicas have apart (share_state.h), after the end
  // of a step's tail. Blocks like a step.
  absl::Status ShareState(StepKind kind, std::int64_t step);
  // Returns a copy of the state after step `step`, of which no tail is left, or
  // hashes of it. Errors: those of snapshot.h.
  absl::StatusOr<PendingSnapshot> MakeSnapshot(std::int64_t step,
                                               const SnapshotParts& made = {});
  absl::Status Restore(const Checkpoint& checkpoint);

  int chunk_count() const { return static_cast<int>(parts_->chunks.size()); }
  const nn::ParameterArena& arena(int chunk = 0) const {
    return parts_->chunks[chunk]->arena();
  }
  nn::Kernels& kernels() { return parts_->kernels(); }
  // Returns the most bytes of the device that the rank has had in use, or more:
  // the values that are gathered before their uses may have been fewest at
  // another time.
  std::uint64_t peak_bytes();
  // Whether collectives run on the device (RankDevice::reduces_on_device()).
  bool reduces_on_device() const { return parts_->device.reduces_on_device(); }
  // Whether a step is being recorded. The owner must then call CollectiveDone()
  // within each Launch().
  bool recording() const { return parts_->wait.quiet(); }

 private:
  StepRunner(const Setup& setup, StrandWait* wait);
  absl::Status Init(Host* host);
  absl::Status MakeLosses();
  absl::Status MakeChunks();
  // Releases values that are gathered before their uses.
  void ReleaseValues();
  // Returns `exhausted`, with the largest holders of the memory added.
  absl::Status WithHolders(const absl::Status& exhausted) const;

  const Setup setup_;
  OwnedParts parts_;
  std::unique_ptr<LossScaler> scaler_;  // null if no step may be skipped
  std::optional<StepLosses> losses_;
  std::optional<Dispatcher> dispatcher_;
  std::optional<StepRecorder> recorder_;  // none if steps are not recorded
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_RUNNER_H_
