#include "actors/engine/loop/hook_action.h"

#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> HookAction::Begin(int id,
                                                       StepInFlight& step,
                                                       Dispatcher& dispatcher) {
  const pipeline::Action& action = step.ActionAt(id);
  step.trace->Begin(action);
  // Work that the hook enqueues comes after the gradients.
  nn::Wait(parts_.device.kernels(), nn::Queue::kCompute,
           parts_.events.Ready(action.chunk, action.index));
  TROUPE_ASSIGN_OR_RETURN(const bool done, hook_->Reduce(id, action.index));
  if (!done) {
    parts_.reducer.NoteLaunched();
    return Progress::kPending;
  }
  TROUPE_RETURN_IF_ERROR(End(id, step, dispatcher, base::Event()));
  return Progress::kDone;
}

absl::Status HookAction::End(int id, StepInFlight& step, Dispatcher&,
                             const base::Event& done) {
  const pipeline::Action& action = step.ActionAt(id);
  // The update comes after what the hook has enqueued.
  nn::Kernels& kernels = parts_.device.kernels();
  nn::Wait(kernels, nn::Queue::kCompute, done);
  parts_.events.NoteReduced(action.chunk, action.index,
                            nn::Record(kernels, nn::Queue::kCompute));
  return absl::OkStatus();
}

}  // namespace troupe::actors
