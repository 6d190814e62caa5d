// B, I, W: the backward of a micro-batch through a chunk, whole or one half of
// it. After each piece (nn/autograd/tape.h) the dispatcher runs what it can:
// reductions of buckets with complete gradients are launched, and buckets that
// are reduced and released are updated, while the rest of the backward still
// runs.

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
  // Returns whether the backward may update parameters
  // (Chunk::UpdateInBackward). False with peers: whether the loss is reduced in
  // time, and so the memory of a step, would depend on them.
  bool Updates(const StepInFlight& step) const;

  const EngineParts& parts_;
  const Chunk::Mode mode_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_BACKWARD_H_
