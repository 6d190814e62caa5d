// Walks the tables of a rank's steps: starts each action when it may run, and
// gives the signals of each that has ended. The rules of
// pipeline/table/action_rules.h decide when an action runs; its StepAction does
// the work (step_action.h).
//
//   Dispatcher dispatcher(options, parts, MakeActions(parts), inbox, losses,
//                         trace);
//   TROUPE_RETURN_IF_ERROR(
//       dispatcher.RunStep(StepKind::kTrain, step, std::move(batches)));
//   // Meanwhile, from another stack, as collectives end:
//   TROUPE_RETURN_IF_ERROR(dispatcher.CollectiveDone(step, action, done));
//
// Two steps at a time (Plan::cross_step): RunStep() returns when nothing is
// left of the step but collectives under way and the updates that follow them.
// The step is then the *earlier* one. The next step's forward begins, waits for
// a bucket's update before it reads the bucket, and runs updates of the earlier
// step while it has nothing else to do; its first backward waits for the end of
// the earlier one. Source: Peng et al. 2019, doi:10.1145/3341301.3359642
// (ByteScheduler), sec. 2 (which operations may be reordered, and why tensors
// that are read first are sent first).
//
// Errors: those of the actions, and of EngineHost::StepDone().
// Threads: the compute strand's. CollectiveDone() is called while a step waits.

#ifndef ACTORS_ENGINE_DISPATCHER_H_
#define ACTORS_ENGINE_DISPATCHER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/inbox.h"
#include "actors/engine/step_action.h"
#include "actors/engine/step_in_flight.h"
#include "actors/engine/value_turns.h"
#include "base/event.h"
#include "nn/autograd/parameter.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

// The rank's actions by ActionKind; null for receives, which the Inbox ends.
using StepActions = std::vector<std::unique_ptr<StepAction>>;

class Dispatcher : private Chunk::Listener {
 public:
  struct Options {
    pipeline::StepTable train;  // includes the needs that bound its order
    pipeline::StepTable evaluate;
    std::vector<int> buckets;  // number of buckets of each chunk of the rank
  };

  // All references outlive it. `parts.chunks` may still be empty.
  Dispatcher(Options options, const EngineParts& parts, StepActions actions,
             Inbox& inbox, StepLosses& losses, StepTrace& trace);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Returns the listener for the bucket events of the rank's chunks.
  Chunk::Listener* listener() { return this; }

  // Replaces the table of training steps by one with the same actions in
  // another order. No action of it may be under way, nor may steps overlap.
  void Reorder(const pipeline::StepTable& train) { train_.SetTable(train); }

  // Runs a step to its end, or until it becomes the earlier one.
  absl::Status RunStep(StepKind kind, std::int64_t step, StepBatches batches);
  // The parts of RunStep(), for the StepRecorder.
  absl::Status Begin(StepKind kind, std::int64_t step, StepBatches batches);
  absl::Status Walk();
  absl::Status EndStep(StepInFlight& step);
  // Returns whether a graph of the device may contain a whole training step.
  bool recordable() const;

  // Runs the first action of `step` that may start. Returns false if none may.
  // `busy`: a compute action is running, so only actions of other kinds may.
  absl::StatusOr<bool> RunNext(StepInFlight& step, bool busy);
  // Marks action `id` as ended, so that actions which wait for it may run.
  void Finish(StepInFlight& step, int id);
  // Ends action `id` of step number `step`, whose collective has ended: its
  // result may be read once `done` has completed.
  absl::Status CollectiveDone(std::int64_t step, int id,
                              const base::Event& done);
  // Returns the error of a step's collective that failed with `why`.
  absl::Status CollectiveFailed(std::int64_t step, int id,
                                const absl::Status& why) const {
    return CollectiveError(IsEarlier(step) ? *earlier_ : *present_, id, why);
  }

  // Runs one action of the earlier step: `preferred` if that may run, else the
  // first that may (-1: no preference). Returns false if there is no earlier
  // step or nothing of it may run now.
  absl::StatusOr<bool> AdvanceEarlier(int preferred = -1);
  // Runs the earlier step to its end, and waits for its collectives.
  absl::Status FinishEarlier();
  // Does the same before a collective of the present step if the earlier one
  // has gathers, so that all ranks start them in this order.
  absl::Status FinishEarlierGathers();
  bool has_earlier() const { return earlier_ && earlier_->under_way; }

  // Returns the present step, or the last one if none is under way.
  StepInFlight& present() { return *present_; }
  const StepInFlight& present() const { return *present_; }
  // Returns the number of the step whose action begins: the present step, or
  // the earlier one.
  std::int64_t beginning_step() const { return beginning_->step; }
  // Returns the actions that have not ended, for errors of a stalled step.
  std::string Unfinished() const;

 private:
  // Chunk::Listener:
  void BucketReady(int chunk, int bucket, int micro_batch) override;
  void BucketReleased(int chunk, int bucket) override;
  absl::Status AwaitUpdate(int chunk, int bucket) override;
  absl::Status AwaitMemory() override;
  absl::Status AwaitGather(int chunk, const nn::Parameter& parameter) override;

  bool IsEarlier(std::int64_t step) const {
    return earlier_ && earlier_->IsOf(step);
  }
  absl::Status Run(StepInFlight& step, int id);
  // Makes the present step the earlier one.
  void HandOver();
  // Records in the position which tensor the step waits for, if any. Called
  // when nothing may run.
  void NoteWait(const StepInFlight& step);

  const EngineParts& parts_;
  const StepActions actions_;
  Inbox& inbox_;
  StepLosses& losses_;
  StepTrace& trace_;  // trace of the present step
  StepInFlight train_, evaluate_;
  std::optional<StepInFlight> earlier_;  // none if steps do not overlap
  std::optional<StepTrace> earlier_trace_;
  // Gathers of the two tables; none if replicas have whole values.
  std::optional<ValueTurns> train_values_, evaluate_values_;
  StepInFlight* present_ = &train_;
  const StepInFlight* beginning_ = &train_;  // step of the action that begins
  int reducing_ = 0;  // reductions of buckets that have begun, but not ended
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_DISPATCHER_H_
