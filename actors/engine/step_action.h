// What the step engine does for one kind of action: one object for a kind, made
// once for a rank (actions/actions.h has the list). When an action may run is
// data (pipeline/action_rules.h); the Dispatcher (dispatcher.h) runs it then.
//
//   const StepActions actions = MakeActions(parts);
//   StepAction& forward = *actions[static_cast<int>(ActionKind::kForward)];
//   TROUPE_ASSIGN_OR_RETURN(auto progress,
//                           forward.Begin(id, step, dispatcher));
//   if (progress == StepAction::Progress::kDone) dispatcher.Finish(step, id);
//
// What lives for one step is in the StepInFlight, which may be the earlier of
// two.
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
    kDone,     // the dispatcher gives its signals
    kPending,  // Dispatcher::CollectiveDone() or Finish() follows
  };

  virtual ~StepAction() = default;

  // Runs action `id` of the step's table.
  virtual absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                         Dispatcher& dispatcher) = 0;
  // A pending one has ended: its result is there when `done` is.
  virtual absl::Status End(int /*id*/, StepInFlight& /*step*/,
                           Dispatcher& /*dispatcher*/,
                           const base::Event& /*done*/) {
    return absl::OkStatus();
  }
  // Whether a graph of the device may hold it.
  virtual bool recordable() const { return true; }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_ACTION_H_
