#include "actors/engine/actions/reductions.h"

#include <utility>

#include "actors/engine/actions/findings.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "pipeline/plan.h"
#include "pipeline/plan_groups.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {

using pipeline::Action;
using pipeline::ActionKind;

namespace {

// Returns the priority of a collective where steps overlap. The bucket that the
// backward completes last is read first by the next forward; its gather has the
// priority of its reduction.
int PriorityOf(int id, const StepInFlight& step) {
  const Action& action = step.ActionAt(id);
  if (action.kind != ActionKind::kGatherBucket) return id;
  return step.index.Find(ActionKind::kReduceBucket, action.index, action.chunk);
}

}  // namespace

absl::StatusOr<StepAction::Progress> CollectiveAction::Begin(
    int id, StepInFlight& step, Dispatcher& dispatcher) {
  const Action& action = step.ActionAt(id);
  // A gather of the earlier step that no forward has waited for comes before
  // collectives of this one, on all ranks.
  if (&step == &dispatcher.present()) {
    TROUPE_RETURN_IF_ERROR(dispatcher.FinishEarlierGathers());
  }
  step.trace->Begin(action);
  TROUPE_ASSIGN_OR_RETURN(std::optional<comm::Collective> collective,
                          steps_.make(parts_, action, step));
  if (collective.has_value()) {
    if (parts_.overlaps_steps) collective->priority = PriorityOf(id, step);
    const pipeline::GroupId group =
        pipeline::GroupIn(*parts_.setup.plan, action);
    const absl::StatusOr<bool> done = parts_.reducer.Start(
        id, group, *collective, steps_.ready(parts_, action, step));
    if (!done.ok()) return CollectiveError(step, id, done.status());
    if (!*done) return Progress::kPending;
  }
  TROUPE_RETURN_IF_ERROR(End(id, step, dispatcher, base::Event()));
  return Progress::kDone;
}

absl::Status CollectiveAction::End(int id, StepInFlight& step, Dispatcher&,
                                   const base::Event& done) {
  return steps_.end(parts_, step.ActionAt(id), step, done);
}

namespace {

using Made = absl::StatusOr<std::optional<comm::Collective>>;

// --- LR: sums the losses of a step over all ranks. ---

Made SumLoss(const EngineParts&, const Action&, StepInFlight& step) {
  return step.loss->Sum();
}

base::Event LossReady(const EngineParts&, const Action&,
                      const StepInFlight& step) {
  return step.loss->ready();
}

absl::Status EndLoss(const EngineParts&, const Action&, StepInFlight& step,
                     const base::Event& done) {
  step.loss->NoteReduced(done);
  step.loss_reduced = true;
  return absl::OkStatus();
}

// --- NR: sums the findings in all gradients (findings.h) over the stages. ---

Made SumFindings(const EngineParts& parts, const Action&, StepInFlight& step) {
  TROUPE_RETURN_IF_ERROR(Inspect(parts, step));
  // Replicas have the same findings, so only the first one adds its own, unless
  // each has looked at a slice of its own.
  const pipeline::Plan& plan = *parts.setup.plan;
  const bool adds = plan.owners() > 1 ||
                    plan.mesh.CoordOf(parts.setup.rank, pipeline::kDpAxis) == 0;
  TROUPE_ASSIGN_OR_RETURN(comm::Collective sum, step.loss->SumFindings(adds));
  return std::make_optional(std::move(sum));
}

base::Event FindingsReady(const EngineParts&, const Action&,
                          const StepInFlight& step) {
  return step.loss->found_ready();
}

absl::Status EndFindings(const EngineParts&, const Action&, StepInFlight& step,
                         const base::Event& done) {
  step.loss->NoteFindingsReduced(done);
  return absl::OkStatus();
}

// --- AR: reduces the gradients of a bucket over the replicas, as the bucket's
// BucketReduction says: one collective for each of its rounds. ---

Made ReduceGrads(const EngineParts& parts, const Action& action,
                 StepInFlight&) {
  ChunkParameters& parameters = parts.ParametersOf(action);
  // A backward may have updated the bucket already.
  if (parameters.updates().IsUpdated(action.index)) return std::nullopt;
  BucketReductions& reductions = parameters.reductions();
  if (reductions.begins_late(action.index)) {
    nn::Kernels& kernels = parts.kernels();
    const nn::Queue queue = parts.events.update_queue();
    nn::Wait(kernels, queue, parts.events.Ready(action.chunk, action.index));
    const nn::QueueScope scope(kernels, queue);
    TROUPE_RETURN_IF_ERROR(reductions.Begin(action.index));
    parts.events.NoteSummed(action.chunk, action.index,
                            nn::Record(kernels, queue));
  }
  return reductions.Exchange(action.index, action.round);
}

base::Event GradsReady(const EngineParts& parts, const Action& action,
                       const StepInFlight&) {
  return parts.events.Ready(action.chunk, action.index);
}

// Begins the next round, or ends the reduction after its `last` one. Enqueues
// in the queue of updates, so that the compute queue waits for no peers.
absl::Status EndRound(const EngineParts& parts, const Action& action, bool last,
                      const base::Event& done) {
  nn::Kernels& kernels = parts.kernels();
  const nn::Queue queue = parts.events.update_queue();
  nn::Wait(kernels, queue, done);
  const nn::QueueScope scope(kernels, queue);
  BucketReductions& reductions = parts.ParametersOf(action).reductions();
  TROUPE_RETURN_IF_ERROR(
      last ? reductions.End(action.index)
           : reductions.Begin(action.index, action.round + 1));
  const base::Event there = nn::Record(kernels, queue);
  if (last) {
    parts.events.NoteReduced(action.chunk, action.index, there);
  } else {
    parts.events.NoteSummed(action.chunk, action.index, there);
  }
  return absl::OkStatus();
}

// Ends the reduction of one micro-batch's gradients, or of all: their slice is
// kept, and the rest of their memory is free.
absl::Status EndSlice(const EngineParts& parts, const Action& action,
                      const StepInFlight& step, const base::Event& done) {
  nn::Kernels& kernels = parts.kernels();
  const nn::Queue queue = parts.events.update_queue();
  nn::Wait(kernels, queue, done);
  ChunkParameters& parameters = parts.ParametersOf(action);
  {
    const nn::QueueScope scope(kernels, queue);
    TROUPE_RETURN_IF_ERROR(parameters.reductions().End(action.index));
  }
  // The first micro-batch replaces what the step before has left.
  const bool adds = action.round > 0;
  TROUPE_RETURN_IF_ERROR(parameters.KeepSlice(action.index, adds, queue));
  if (pipeline::IsLastRound(action, step.index)) {
    parts.events.NoteReduced(action.chunk, action.index,
                             nn::Record(kernels, queue));
  }
  return absl::OkStatus();
}

absl::Status EndGrads(const EngineParts& parts, const Action& action,
                      StepInFlight& step, const base::Event& done) {
  if (parts.ParametersOf(action).slices_grads()) {
    return EndSlice(parts, action, step, done);
  }
  if (parts.ParametersOf(action).reductions().in_place(action.index)) {
    parts.events.NoteReduced(action.chunk, action.index, done);
    return absl::OkStatus();
  }
  return EndRound(parts, action, pipeline::IsLastRound(action, step.index),
                  done);
}

// --- RU: does the same and updates the bucket, in one pass over memory. ---

Made ReduceAndUpdate(const EngineParts& parts, const Action& action,
                     StepInFlight&) {
  return parts.ParametersOf(action).updates().ReduceUpdate(action.index);
}

absl::Status EndUpdate(const EngineParts& parts, const Action& action,
                       StepInFlight& step, const base::Event& done) {
  TROUPE_RETURN_IF_ERROR(EndGrads(parts, action, step, done));
  parts.ParametersOf(action).ReleaseGrads(action.index);
  return absl::OkStatus();
}

// --- PN: sums the norms of a bucket's parameters over the replicas, if each
// has slices of them, and over the ranks along tp, if each has pieces. ---

// Returns whether this rank adds its sums, which other ranks of the group have,
// too, if replicas are equal, or if the bucket is a copy on each rank along tp.
bool CountsNorms(const EngineParts& parts, const Action& action) {
  const pipeline::Plan& plan = *parts.setup.plan;
  if (!plan.SplitsParameters()) return true;
  const int rank = parts.setup.rank;
  const pipeline::StagePlan& stage = plan.stages[parts.ChunkOf(action).stage()];
  const bool is_first_replica = plan.mesh.CoordOf(rank, pipeline::kDpAxis) == 0;
  const bool is_first_piece = plan.mesh.CoordOf(rank, pipeline::kTpAxis) == 0;
  return (plan.owners() > 1 || is_first_replica) &&
         (stage.IsSplitBucket(action.index) || is_first_piece);
}

Made SumNorms(const EngineParts& parts, const Action& action,
              StepInFlight& step) {
  TROUPE_RETURN_IF_ERROR(PrepareUpdates(parts, step));
  parts.events.BeginUpdate(action.chunk, action.index);
  return parts.ParametersOf(action).updates().SumParameters(
      action.index, step.loss->scalars(), CountsNorms(parts, action));
}

base::Event NormsReady(const EngineParts& parts, const Action&,
                       const StepInFlight&) {
  return nn::Record(parts.kernels(), parts.events.update_queue());
}

absl::Status EndNorms(const EngineParts& parts, const Action&, StepInFlight&,
                      const base::Event& done) {
  nn::Wait(parts.kernels(), parts.events.update_queue(), done);
  return absl::OkStatus();
}

// --- AG: brings the slices of a bucket's values together that the replicas
// have updated. ---

Made GatherSlices(const EngineParts& parts, const Action& action,
                  StepInFlight&) {
  return parts.ParametersOf(action).updates().GatherValues(action.index);
}

base::Event SlicesReady(const EngineParts& parts, const Action& action,
                        const StepInFlight&) {
  return parts.events.Updated(action.chunk, action.index);
}

absl::Status EndGather(const EngineParts& parts, const Action& action,
                       StepInFlight&, const base::Event& done) {
  parts.events.NoteGathered(action.chunk, action.index, done);
  return absl::OkStatus();
}

// --- GV: the same before the values are used; each replica has its slice. ---

Made GatherValues(const EngineParts& parts, const Action& action,
                  StepInFlight&) {
  ChunkParameters& parameters = parts.ParametersOf(action);
  parameters.HoldValues(action.index);
  return parameters.updates().GatherValues(action.index);
}

base::Event ValuesReady(const EngineParts&, const Action&,
                        const StepInFlight&) {
  return base::Event();
}

absl::Status EndValues(const EngineParts&, const Action&, StepInFlight&,
                       const base::Event&) {
  return absl::OkStatus();
}

struct KindSteps {
  ActionKind kind;
  CollectiveAction::Steps steps;
};

constexpr KindSteps kSteps[] = {
    {ActionKind::kReduceLoss, {SumLoss, LossReady, EndLoss}},
    {ActionKind::kReduceFindings, {SumFindings, FindingsReady, EndFindings}},
    {ActionKind::kReduceBucket, {ReduceGrads, GradsReady, EndGrads}},
    {ActionKind::kReduceUpdateBucket, {ReduceAndUpdate, GradsReady, EndUpdate}},
    {ActionKind::kReduceNorms, {SumNorms, NormsReady, EndNorms}},
    {ActionKind::kGatherBucket, {GatherSlices, SlicesReady, EndGather}},
    {ActionKind::kGatherValues, {GatherValues, ValuesReady, EndValues}},
};

}  // namespace

std::unique_ptr<StepAction> MakeCollectiveAction(ActionKind kind,
                                                 const EngineParts& parts) {
  for (const KindSteps& known : kSteps) {
    if (known.kind == kind) {
      return std::make_unique<CollectiveAction>(known.steps, parts);
    }
  }
  return nullptr;
}

}  // namespace troupe::actors
