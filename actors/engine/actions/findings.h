// What optimizers find when they look at the gradients of a step as a whole:
// their norm, and whether all are numbers. NR sums it over the stages where
// there are several; else the first update of the step looks.
//
//   if (!step.inspected) TROUPE_RETURN_IF_ERROR(Inspect(parts, step));

#ifndef ACTORS_ENGINE_ACTIONS_FINDINGS_H_
#define ACTORS_ENGINE_ACTIONS_FINDINGS_H_

#include "absl/status/status.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_in_flight.h"

namespace troupe::actors {

// Looks at all gradients of the rank's chunks; they are reduced, or will be in
// the queue of updates. The step is inspected from here on.
absl::Status Inspect(const EngineParts& parts, StepInFlight& step);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_FINDINGS_H_
