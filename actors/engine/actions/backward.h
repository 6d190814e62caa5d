// B, I, W: the backward of a micro-batch through a chunk, whole or one half of
// it. After each piece (nn/autograd/tape.h) the dispatcher looks up: buckets
// whose last gradient has landed are launched, and buckets that are reduced and
// read no more are updated, while the rest of the backward still runs.

#ifndef ACTORS_ENGINE_ACTIONS_BACKWARD_H_
#define ACTORS_ENGINE_ACTIONS_BACKWARD_H_

#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"

namespace troupe::actors {

class BackwardAction : public StepAction {
 public:
  BackwardAction(const EngineParts& parts, Chunk::Mode mode)
      : parts_(parts), mode_(mode) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;

 private:
  // Whether it may update parameters (Chunk::UpdateInBackward). With peers it
  // would depend on them whether the loss is there in time, and so how much
  // memory a step takes.
  bool Updates(const StepInFlight& step) const;

  const EngineParts& parts_;
  const Chunk::Mode mode_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_BACKWARD_H_
