// UP: the update of a bucket, in the queue of updates. RL: the release of
// values that were gathered for their uses.

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
  const EngineParts& parts_;
};

class ReleaseAction : public StepAction {
 public:
  explicit ReleaseAction(const EngineParts& parts) : parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;

 private:
  const EngineParts& parts_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_UPDATE_H_
