// Findings of an optimizer that inspects all gradients of a step: their norm,
// and whether all are finite. With several stages, an NR action inspects them
// and sums the findings over the stages; else the first update of the step
// inspects them.
//
//   TROUPE_RETURN_IF_ERROR(PrepareUpdates(parts, step));
//   // ... updates that read step.loss->scalars() ...

#ifndef ACTORS_ENGINE_ACTIONS_FINDINGS_H_
#define ACTORS_ENGINE_ACTIONS_FINDINGS_H_

#include "absl/status/status.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_in_flight.h"

namespace troupe::actors {

// Inspects all gradients of the rank's chunks, and sets step.inspected. The
// gradients are reduced, or the queue of updates waits until they are.
absl::Status Inspect(const EngineParts& parts, StepInFlight& step);

// Makes the scalars of the step ready for updates. If the optimizer needs
// findings from all gradients, the first call in a step completes them, and
// sets the clip factor and the next step's loss scale.
absl::Status PrepareUpdates(const EngineParts& parts, StepInFlight& step);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_FINDINGS_H_
