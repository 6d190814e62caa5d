#include "actors/engine/actions/update.h"

#include "actors/engine/actions/findings.h"
#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> UpdateAction::Begin(int id,
                                                         StepInFlight& step,
                                                         Dispatcher&) {
  const pipeline::Action& action = step.ActionAt(id);
  const TraceScope scope(*step.trace, action);
  TROUPE_RETURN_IF_ERROR(PrepareUpdates(parts_, step));
  parts_.events.BeginUpdate(action.chunk, action.index);
  TROUPE_RETURN_IF_ERROR(parts_.ParametersOf(action).updates().Update(
      action.index, step.loss->scalars()));
  parts_.events.EndUpdate(action.chunk, action.index);
  return Progress::kDone;
}

absl::StatusOr<StepAction::Progress> ReleaseAction::Begin(int id,
                                                          StepInFlight& step,
                                                          Dispatcher&) {
  const pipeline::Action& action = step.ActionAt(id);
  const TraceScope scope(*step.trace, action);
  parts_.ParametersOf(action).ReleaseValues(action.index);
  return Progress::kDone;
}

}  // namespace troupe::actors
