// UP: the update of a bucket, in the queue of updates. The first one of a step
// whose optimizer looks at all gradients first concludes what they are like.

#ifndef ACTORS_ENGINE_ACTIONS_UPDATE_H_
#define ACTORS_ENGINE_ACTIONS_UPDATE_H_

#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"

namespace troupe::actors {

class UpdateAction : public StepAction {
 public:
  explicit UpdateAction(const EngineParts& parts) : parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;

 private:
  absl::Status Conclude(StepInFlight& step);

  const EngineParts& parts_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_UPDATE_H_
