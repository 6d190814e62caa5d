#include "actors/engine/actions/send.h"

#include "nn/kernels/device_queues.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> SendAction::Begin(int id,
                                                       StepInFlight& step,
                                                       Dispatcher&) {
  const pipeline::Action& action = step.ActionAt(id);
  const TraceScope scope(*step.trace, action);
  Chunk& chunk = parts_.ChunkOf(action);
  const bool forward = pipeline::IsOfForward(action.kind);
  parts_.host.Send(chunk.stage() + (forward ? 1 : -1), forward, action.index,
                   forward ? chunk.TakeOutputs(action.index)
                           : chunk.TakeInputGradients(action.index),
                   nn::Record(parts_.kernels(), nn::Queue::kCompute));
  return Progress::kDone;
}

}  // namespace troupe::actors
