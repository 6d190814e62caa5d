#include "actors/engine/actions/backward.h"

#include "actors/engine/dispatcher.h"
#include "base/check.h"

namespace troupe::actors {

bool BackwardAction::Updates(const StepInFlight& step) const {
  const EngineSetup& setup = parts_.setup;
  return step.loss_reduced && !parts_.overlaps_steps &&
         setup.plan->mesh.size() == 1 &&
         setup.plan->RankPlanOf(setup.rank).reduce_inline;
}

absl::StatusOr<StepAction::Progress> BackwardAction::Begin(
    int id, StepInFlight& step, Dispatcher& dispatcher) {
  // Gradients of the earlier step may still be in use by its reductions.
  TROUPE_RETURN_IF_ERROR(dispatcher.FinishEarlier());
  const pipeline::Action& action = step.ActionAt(id);
  const TraceScope scope(*step.trace, action);
  Chunk& chunk = parts_.ChunkOf(action);
  if (Updates(step)) chunk.UpdateInBackward();
  chunk.BeginBackward(action.index, mode_);
  while (true) {
    for (bool ran = true; ran;) {
      TROUPE_ASSIGN_OR_RETURN(ran, dispatcher.RunNext(step, /*busy=*/true));
    }
    TROUPE_ASSIGN_OR_RETURN(const bool more, chunk.NextPiece());
    if (!more) return Progress::kDone;
    parts_.wait.TakeNews(/*expected=*/parts_.reducer.in_flight() > 0);
  }
}

}  // namespace troupe::actors
