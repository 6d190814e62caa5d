// Walks the tables of a rank's steps: starts what may run, and gives the
// signals of what has ended. It knows how actions run
// (pipeline/action_rules.h), but not what they do: that is a StepAction's
// (step_action.h).
//
//   Dispatcher dispatcher(options, parts, MakeActions(parts), inbox, losses,
//                         trace);
//   TROUPE_RETURN_IF_ERROR(
//       dispatcher.RunStep(StepKind::kTrain, step, std::move(batches)));
//   // Meanwhile, from another stack, as collectives end:
//   TROUPE_RETURN_IF_ERROR(dispatcher.CollectiveDone(step, action, done));
//
// Two steps at a time (Plan::cross_step): RunStep() returns when nothing is
// left of the step but collectives under way and the updates behind them. The
// step is then the *earlier* one. The next step's forward begins, waits for a
// bucket's update before it reads the bucket, and runs updates of the earlier
// step while it has nothing else to do; its first backward waits for the end of
// the earlier one. Source: Peng et al. 2019, doi:10.1145/3341301.3359642
// (ByteScheduler), sec. 2 (what may overtake what, and why what is read first
// is to go first).
//
// Errors: those of the actions, and of EngineHost::StepDone().
// Threads: the compute strand's; CollectiveDone() while a step waits.

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
#include "actors/chunks/step_trace.h"
#include "actors/chunks/step_types.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/inbox.h"
#include "actors/engine/step_action.h"
#include "actors/engine/step_in_flight.h"
#include "base/event.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

// Indexed by ActionKind; null for receives, which an Inbox ends.
using StepActions = std::vector<std::unique_ptr<StepAction>>;

class Dispatcher : private Chunk::Listener {
 public:
  struct Options {
    pipeline::StepTable train;  // with what bounds its order
    pipeline::StepTable evaluate;
    std::vector<int> buckets;  // of the rank's chunks
  };

  // All outlive it; what `parts` refers to may still be empty.
  Dispatcher(Options options, const EngineParts& parts, StepActions actions,
             Inbox& inbox, StepLosses& losses, StepTrace& trace);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // What chunks tell of their buckets.
  Chunk::Listener* listener() { return this; }

  // Runs a step to its end, or to where it is the earlier one.
  absl::Status RunStep(StepKind kind, std::int64_t step, StepBatches batches);
  // The parts of it, for who records a step.
  absl::Status Begin(StepKind kind, std::int64_t step, StepBatches batches);
  absl::Status Walk();
  absl::Status EndStep(StepInFlight& step);
  // Whether a graph of the device may hold all of a training step.
  bool recordable() const;

  // Runs the first action of `step` that may start; false where none may.
  // `busy`: a compute action is running, so only others may.
  absl::StatusOr<bool> RunNext(StepInFlight& step, bool busy);
  // Action `id` has ended: what waits for it may run.
  void Finish(StepInFlight& step, int id);
  // The collective of action `id` has ended; `step` is a number.
  absl::Status CollectiveDone(std::int64_t step, int id,
                              const base::Event& done);
  // What to say of a collective of a step that failed because of `why`.
  absl::Status CollectiveFailed(std::int64_t step, int id,
                                const absl::Status& why) const {
    return CollectiveError(IsEarlier(step) ? *earlier_ : *present_, id, why);
  }

  // Runs something of the earlier step: action `preferred` where that may run;
  // -1: any. False where nothing may run now, or there is none.
  absl::StatusOr<bool> AdvanceEarlier(int preferred = -1);
  // Runs all of it, and waits for what it needs.
  absl::Status FinishEarlier();
  bool has_earlier() const { return earlier_ && earlier_->under_way; }

  // The present step, or the last one.
  StepInFlight& present() { return *present_; }
  const StepInFlight& present() const { return *present_; }
  // What is still to run, for a message about a step that stands still.
  std::string Unfinished() const;

 private:
  // Chunk::Listener:
  void BucketReady(int chunk, int bucket) override;
  void BucketReleased(int chunk, int bucket) override;
  absl::Status AwaitUpdate(int chunk, int bucket) override;

  bool IsEarlier(std::int64_t step) const {
    return earlier_ && earlier_->IsOf(step);
  }
  absl::Status Run(StepInFlight& step, int id);
  // The present step becomes the earlier one.
  void HandOver();
  // Nothing may run: says which tensor the step waits for, if it waits for one.
  void NoteWait(const StepInFlight& step);

  const EngineParts& parts_;
  const StepActions actions_;
  Inbox& inbox_;
  StepLosses& losses_;
  StepTrace& trace_;  // of the present step
  StepInFlight train_, evaluate_;
  std::optional<StepInFlight> earlier_;  // none where steps do not overlap
  std::optional<StepTrace> earlier_trace_;
  StepInFlight* present_ = &train_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_DISPATCHER_H_
