#include "actors/engine/actions/reductions.h"

#include "actors/engine/actions/findings.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {

using pipeline::Action;

absl::StatusOr<StepAction::Progress> CollectiveAction::Begin(
    int id, StepInFlight& step, Dispatcher& dispatcher) {
  const Action& action = step.ActionAt(id);
  step.trace->Begin(action);
  TROUPE_ASSIGN_OR_RETURN(std::optional<comm::Collective> collective,
                          Make(action, step, dispatcher));
  if (collective.has_value()) {
    // The bucket that the backward completes last is read first by the next
    // forward.
    if (parts_.overlaps_steps) collective->priority = id;
    const absl::StatusOr<bool> done =
        parts_.reducer.Start(id, pipeline::GroupOf(action), *collective,
                             Ready(action, step, dispatcher));
    if (!done.ok()) return CollectiveError(step, id, done.status());
    if (!*done) return Progress::kPending;
  }
  TROUPE_RETURN_IF_ERROR(End(id, step, dispatcher, base::Event()));
  return Progress::kDone;
}

// --- LR ---

absl::StatusOr<std::optional<comm::Collective>> ReduceLossAction::Make(
    const Action&, StepInFlight& step, Dispatcher&) {
  return step.loss->Sum();
}

base::Event ReduceLossAction::Ready(const Action&, const StepInFlight& step,
                                    const Dispatcher&) const {
  return step.loss->ready();
}

absl::Status ReduceLossAction::End(int, StepInFlight& step, Dispatcher&,
                                   const base::Event& done) {
  step.loss->NoteReduced(done);
  step.loss_reduced = true;
  return absl::OkStatus();
}

// --- NR ---

absl::StatusOr<std::optional<comm::Collective>> ReduceFindingsAction::Make(
    const Action&, StepInFlight& step, Dispatcher&) {
  TROUPE_RETURN_IF_ERROR(Inspect(parts_, step));
  // Replicas have the same findings, so only the first one adds its own, unless
  // each has looked at a slice of its own.
  const pipeline::Plan& plan = *parts_.setup.plan;
  const bool adds =
      plan.owners() > 1 ||
      plan.mesh.CoordOf(parts_.setup.rank, pipeline::kDpAxis) == 0;
  TROUPE_ASSIGN_OR_RETURN(comm::Collective sum, step.loss->SumFindings(adds));
  return std::make_optional(std::move(sum));
}

base::Event ReduceFindingsAction::Ready(const Action&, const StepInFlight& step,
                                        const Dispatcher&) const {
  return step.loss->found_ready();
}

absl::Status ReduceFindingsAction::End(int, StepInFlight& step, Dispatcher&,
                                       const base::Event& done) {
  step.loss->NoteFindingsReduced(done);
  return absl::OkStatus();
}

// --- AR ---

absl::StatusOr<std::optional<comm::Collective>> ReduceBucketAction::Make(
    const Action& action, StepInFlight&, Dispatcher&) {
  const ChunkParameters& parameters = parts_.ParametersOf(action);
  // A backward may have updated the bucket already.
  if (parameters.updates().IsUpdated(action.index)) return std::nullopt;
  return parameters.reductions().Exchange(action.index, action.round);
}

base::Event ReduceBucketAction::Ready(const Action& action, const StepInFlight&,
                                      const Dispatcher&) const {
  return parts_.events.Ready(action.chunk, action.index);
}

absl::Status ReduceBucketAction::End(int id, StepInFlight& step, Dispatcher&,
                                     const base::Event& done) {
  const Action& action = step.ActionAt(id);
  if (parts_.ParametersOf(action).reductions().in_place(action.index)) {
    parts_.events.NoteReduced(action.chunk, action.index, done);
    return absl::OkStatus();
  }
  return EndRound(action, pipeline::IsLastRound(action, step.index), done);
}

// Enqueues in the queue of updates, so that the compute queue waits for no
// peers.
absl::Status ReduceBucketAction::EndRound(const Action& action, bool last,
                                          const base::Event& done) {
  nn::Kernels& kernels = parts_.kernels();
  const nn::Queue queue = parts_.events.update_queue();
  nn::Wait(kernels, queue, done);
  const nn::QueueScope scope(kernels, queue);
  BucketReductions& reductions = parts_.ParametersOf(action).reductions();
  TROUPE_RETURN_IF_ERROR(
      last ? reductions.End(action.index)
           : reductions.Begin(action.index, action.round + 1));
  const base::Event there = nn::Record(kernels, queue);
  if (last) {
    parts_.events.NoteReduced(action.chunk, action.index, there);
  } else {
    parts_.events.NoteSummed(action.chunk, action.index, there);
  }
  return absl::OkStatus();
}

// --- RU ---

absl::StatusOr<std::optional<comm::Collective>> ReduceUpdateAction::Make(
    const Action& action, StepInFlight&, Dispatcher&) {
  return parts_.ParametersOf(action).updates().ReduceUpdate(action.index);
}

absl::Status ReduceUpdateAction::End(int id, StepInFlight& step,
                                     Dispatcher& dispatcher,
                                     const base::Event& done) {
  TROUPE_RETURN_IF_ERROR(ReduceBucketAction::End(id, step, dispatcher, done));
  const Action& action = step.ActionAt(id);
  parts_.ParametersOf(action).ReleaseGrads(action.index);
  return absl::OkStatus();
}

// --- AG ---

absl::StatusOr<std::optional<comm::Collective>> GatherBucketAction::Make(
    const Action& action, StepInFlight&, Dispatcher&) {
  return parts_.ParametersOf(action).updates().GatherValues(action.index);
}

base::Event GatherBucketAction::Ready(const Action& action, const StepInFlight&,
                                      const Dispatcher&) const {
  return parts_.events.Updated(action.chunk, action.index);
}

absl::Status GatherBucketAction::End(int id, StepInFlight& step, Dispatcher&,
                                     const base::Event& done) {
  const Action& action = step.ActionAt(id);
  parts_.events.NoteGathered(action.chunk, action.index, done);
  return absl::OkStatus();
}

}  // namespace troupe::actors
