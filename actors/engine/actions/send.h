// SA, SG: sends a micro-batch's outputs to the next stage, or the gradients of
// its inputs to the stage before. The host sends the message, so no graph of
// the device can contain it.

#ifndef ACTORS_ENGINE_ACTIONS_SEND_H_
#define ACTORS_ENGINE_ACTIONS_SEND_H_

#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"

namespace troupe::actors {

class SendAction : public StepAction {
 public:
  explicit SendAction(const EngineParts& parts) : parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;
  bool recordable() const override { return false; }

 private:
  const EngineParts& parts_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_SEND_H_
