#include "actors/engine/actions/findings.h"

#include "base/check.h"

namespace troupe::actors {

absl::Status Inspect(const EngineParts& parts, StepInFlight& step) {
  step.inspected = true;
  TROUPE_RETURN_IF_ERROR(step.loss->PassToUpdates());
  parts.events.AwaitAllGradients();
  for (ChunkParameters* parameters : parts.parameters) {
    TROUPE_RETURN_IF_ERROR(parameters->updates().Inspect(step.loss->scalars()));
  }
  return absl::OkStatus();
}

namespace {

// Completes the findings, sets the clip factor and the next step's loss scale.
absl::Status Conclude(const EngineParts& parts, StepInFlight& step) {
  step.concluded = true;
  if (!step.inspected) TROUPE_RETURN_IF_ERROR(Inspect(parts, step));
  TROUPE_RETURN_IF_ERROR(
      parts.parameters[0]->updates().Conclude(step.loss->scalars()));
  return step.loss->Settle();
}

}  // namespace

absl::Status PrepareUpdates(const EngineParts& parts, StepInFlight& step) {
  TROUPE_RETURN_IF_ERROR(step.loss->PassToUpdates());
  const bool concludes =
      parts.setup.plan->update_needs_all_buckets && !step.concluded;
  return concludes ? Conclude(parts, step) : absl::OkStatus();
}

}  // namespace troupe::actors
