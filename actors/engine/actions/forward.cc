#include "actors/engine/actions/forward.h"

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> ForwardAction::Begin(int id,
                                                          StepInFlight& step,
                                                          Dispatcher&) {
  const pipeline::Action& action = step.ActionAt(id);
  const TraceScope scope(*step.trace, action);
  Chunk& chunk = parts_.ChunkOf(action);
  TROUPE_RETURN_IF_ERROR(chunk.Forward(action.index));
  if (!chunk.is_last()) return Progress::kDone;
  const nn::Tensor& output = chunk.output(action.index);
  TROUPE_RETURN_IF_ERROR(step.kind == StepKind::kPredict
                             ? parts_.outputs.Keep(parts_.kernels(), output)
                             : step.loss->Add(action.index, output));
  return Progress::kDone;
}

}  // namespace troupe::actors
