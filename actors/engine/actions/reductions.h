// LR, NR, AR, RU, AG, GV: one collective each, in the group that the rules name
// (pipeline/table/action_rules.h). A row of the table in reductions.cc makes
// the collective, says when its range is ready and handles its end;
// CollectiveAction gives it to the Reducer.

#ifndef ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_
#define ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class CollectiveAction : public StepAction {
 public:
  // Calls in which the kinds differ. They have no state of their own.
  struct Steps {
    // Returns the collective; none if nothing is left to do.
    absl::StatusOr<std::optional<comm::Collective>> (*make)(
        const EngineParts& parts, const pipeline::Action& action,
        StepInFlight& step);
    // Returns the event after which the collective's range may be read.
    base::Event (*ready)(const EngineParts& parts,
                         const pipeline::Action& action,
                         const StepInFlight& step);
    // Notes the end, whose data are there once `done` has completed.
    absl::Status (*end)(const EngineParts& parts,
                        const pipeline::Action& action, StepInFlight& step,
                        const base::Event& done);
  };

  CollectiveAction(const Steps& steps, const EngineParts& parts)
      : steps_(steps), parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 private:
  const Steps steps_;
  const EngineParts& parts_;
};

// Returns the action of a kind above; null for every other kind.
std::unique_ptr<StepAction> MakeCollectiveAction(pipeline::ActionKind kind,
                                                 const EngineParts& parts);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_
