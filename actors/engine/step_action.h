// Runs one kind of action in the step engine (strategy pattern): a rank has one
// object for each kind (actions/actions.h has the list). When an action may run
// is data (pipeline/table/action_rules.h); the Dispatcher (dispatcher.h) runs
// it then.
//
//   const StepActions actions = MakeActions(parts);
//   StepAction& forward = *actions[static_cast<int>(ActionKind::kForward)];
//   TROUPE_ASSIGN_OR_RETURN(auto progress,
//                           forward.Begin(id, step, dispatcher));
//   if (progress == StepAction::Progress::kDone) dispatcher.Finish(step, id);
//
// The state of one step is in the StepInFlight: the present step, or the
// earlier one that still has a tail.
//
// Errors: they end the engine, and name step and part.
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_STEP_ACTION_H_
#define ACTORS_ENGINE_STEP_ACTION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/step_in_flight.h"
#include "base/event.h"

namespace troupe::actors {

class Dispatcher;

class StepAction {
 public:
  enum class Progress {
    kDone,     // it has ended: the dispatcher gives its signals
    kPending,  // a call of Dispatcher::CollectiveDone() or Finish() ends it
  };

  virtual ~StepAction() = default;

  // Runs action `id` of the step's table.
  virtual absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                         Dispatcher& dispatcher) = 0;
  // Ends a pending action. Its result may be read once `done` has completed.
  virtual absl::Status End(int /*id*/, StepInFlight& /*step*/,
                           Dispatcher& /*dispatcher*/,
                           const base::Event& /*done*/) {
    return absl::OkStatus();
  }
  // Returns whether a graph of the device may contain the action.
  virtual bool recordable() const { return true; }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_ACTION_H_
