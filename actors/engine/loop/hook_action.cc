#include "actors/engine/loop/hook_action.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> HookAction::Begin(int id,
                                                       StepInFlight& step,
                                                       Dispatcher& dispatcher) {
  const pipeline::Action& action = step.ActionAt(id);
  step.trace->Begin(action);
  if (!parts_.events.Ready(action.chunk, action.index).ready()) {
    return absl::UnimplementedError(
        "a communication hook is code of the host, and this device computes "
        "gradients in queues; train without the hook there");
  }
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
  parts_.events.NoteReduced(action.chunk, action.index, done);
  return absl::OkStatus();
}

}  // namespace troupe::actors
