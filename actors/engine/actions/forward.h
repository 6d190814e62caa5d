// F: the forward of a micro-batch through a chunk; in the last chunk also its
// loss, or the output of a prediction.

#ifndef ACTORS_ENGINE_ACTIONS_FORWARD_H_
#define ACTORS_ENGINE_ACTIONS_FORWARD_H_

#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"

namespace troupe::actors {

class ForwardAction : public StepAction {
 public:
  // `parts` outlives the action, here as for all actions.
  explicit ForwardAction(const EngineParts& parts) : parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;

 private:
  const EngineParts& parts_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_FORWARD_H_
