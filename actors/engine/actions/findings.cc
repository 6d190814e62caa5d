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

}  // namespace troupe::actors
