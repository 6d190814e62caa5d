#include "actors/engine/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/chunks/memory_holders.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/action_rules.h"
#include "pipeline/activation_bound.h"
#include "pipeline/compute_order.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;
using pipeline::SignalKind;

Chunk::Mode ModeOf(ActionKind backward) {
  switch (backward) {
    case ActionKind::kBackwardInputs:
      return Chunk::Mode::kInputs;
    case ActionKind::kBackwardWeights:
      return Chunk::Mode::kWeights;
    default:
      return Chunk::Mode::kWhole;
  }
}

// Whether layers of the rank communicate: then its order is that of its peers.
bool LayersCommunicate(const StepRunner::Setup& setup) {
  const std::vector<int> stages = setup.plan->StagesOf(setup.rank);
  return std::any_of(stages.begin(), stages.end(), [&](int stage) {
    return !setup.plan->stages[stage].layer_axes.empty();
  });
}

// The rank's table for training, with what bounds its order.
pipeline::StepTable TrainTableOf(const StepRunner::Setup& setup) {
  pipeline::StepTable table = setup.train_table;
  if (setup.plan->dispatch == pipeline::Dispatch::kStrict ||
      LayersCommunicate(setup)) {
    pipeline::KeepComputeOrder(table);
  } else {
    pipeline::BoundActivations(table);
  }
  return table;
}

// Numbers of buckets of the rank's chunks.
std::vector<int> BucketsOf(const pipeline::Plan& plan, int rank) {
  std::vector<int> buckets;
  for (int stage : plan.StagesOf(rank)) {
    buckets.push_back(static_cast<int>(plan.stages[stage].buckets.size()));
  }
  return buckets;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const Setup& setup, Host* host, StrandWait* wait) {
  std::unique_ptr<StepRunner> runner(new StepRunner(setup, host, wait));
  TROUPE_RETURN_IF_ERROR(runner->Init());
  return runner;
}

StepRunner::StepRunner(const Setup& setup, Host* host, StrandWait* wait)
    : setup_(setup),
      position_(setup.position == nullptr ? own_position_ : *setup.position),
      host_(host),
      quiet_wait_(wait),
      wait_(&quiet_wait_),
      trace_(setup.spec->trace, setup.rank, setup.plan->StagesOf(setup.rank),
             setup.plan->mesh.CoordsOf(setup.rank).dp),
      reducer_({setup.groups, setup.plan->RankPlanOf(setup.rank).reduce_inline},
               host, wait_),
      ties_(*setup.plan, setup.rank),
      train_(TrainTableOf(setup), BucketsOf(*setup.plan, setup.rank)),
      evaluate_(setup.plan->RankPlanOf(setup.rank).evaluate,
                BucketsOf(*setup.plan, setup.rank)),
      table_(&train_),
      cursor_(&train_.cursor) {}

absl::Status StepRunner::Init() {
  const JobSpec& spec = *setup_.spec;
  TROUPE_ASSIGN_OR_RETURN(kernels_, OpenRankKernels(spec, setup_.local_rank));
  trace_.WatchMemory(&kernels_->allocator());
  JoinGroups();
  events_.emplace(*kernels_, UpdateQueue());
  if (OverlapsSteps()) {
    tail_.emplace(pipeline::TableCursor(train_.cursor.table(),
                                        BucketsOf(*setup_.plan, setup_.rank)));
  }
  TROUPE_RETURN_IF_ERROR(MakeScaler());
  for (int turn = 0; turn < (tail_ ? 2 : 1); ++turn) {
    TROUPE_ASSIGN_OR_RETURN(
        StepLoss loss,
        StepLoss::Create(*kernels_,
                         {spec.stop_on_nan, setup_.plan->loss_scale,
                          UpdateQueue(), scaler_.get(), spec.loss_reduction}));
    losses_.push_back(std::move(loss));
  }
  TROUPE_RETURN_IF_ERROR(MakeChunks());
  MakeGraphs();
  return absl::OkStatus();
}

absl::Status StepRunner::Begin(StepKind kind, std::int64_t step,
                               StepBatches batches) {
  if (kind == StepKind::kTrain) {
    turn_ = (turn_ + 1) % losses_.size();
  } else {
    TROUPE_RETURN_IF_ERROR(FinishTail());
    events_->AwaitAllUpdates();
  }
  kind_ = kind;
  step_ = step;
  table_ = kind == StepKind::kTrain ? &train_ : &evaluate_;
  cursor_ = &table_->cursor;
  TROUPE_CHECK(
      static_cast<int>(batches.size()) == cursor_->table().micro_batches(),
      "a step has one batch per micro-batch");
  cursor_->Begin();
  position_.BeginStep(kind, step);
  trace_.BeginStep(kind, step);
  inspected_ = concluded_ = loss_reduced_ = false;
  TROUPE_RETURN_IF_ERROR(
      loss().BeginStep(kind, step, chunks_[0]->ScalarsOf(step)));
  for (std::size_t c = 0; c + 1 < chunks_.size(); ++c) {
    chunks_[c]->BeginStep(kind, step, batches);
  }
  chunks_.back()->BeginStep(kind, step, std::move(batches));
  std::vector<Transfer> early;
  early.swap(early_);
  for (const Transfer& transfer : early) {
    TROUPE_RETURN_IF_ERROR(Deliver(transfer));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::RunStep(StepKind kind, std::int64_t step,
                                 StepBatches batches) {
  const absl::Status status = graphs_ && kind == StepKind::kTrain
                                  ? RunTrainStep(step, std::move(batches))
                                  : RunEagerly(kind, step, std::move(batches));
  return absl::IsResourceExhausted(status) ? WithHolders(status) : status;
}

absl::Status StepRunner::WithHolders(const absl::Status& exhausted) const {
  MemoryHolders holders(kernels_->allocator().stats().bytes_in_use);
  for (const auto& chunk : chunks_) chunk->AddTo(holders);
  return absl::ResourceExhaustedError(absl::StrCat(
      exhausted.message(), ". The rank's memory: ", holders.ToString(),
      ". More micro-batches, or modules that are recomputed, need "
      "less"));
}

absl::Status StepRunner::Walk() {
  const bool leaves_tail = kind_ == StepKind::kTrain && tail_.has_value();
  while (leaves_tail ? !cursor_->draining() : !cursor_->complete()) {
    TROUPE_ASSIGN_OR_RETURN(bool ran, RunNext(/*busy=*/false));
    if (!ran) {
      TROUPE_ASSIGN_OR_RETURN(ran, AdvanceTail());
    }
    if (ran) continue;
    if (quiet_wait_.quiet()) {
      return absl::FailedPreconditionError(
          "the step waits for other strands of the host");
    }
    NoteWait();
    wait_->AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status StepRunner::RunEagerly(StepKind kind, std::int64_t step,
                                    StepBatches batches) {
  TROUPE_RETURN_IF_ERROR(Begin(kind, step, std::move(batches)));
  TROUPE_RETURN_IF_ERROR(Walk());
  TROUPE_RETURN_IF_ERROR(FinishTail());  // of the step before
  if (cursor_->complete()) return EndStep(loss(), kind, step);
  tail_->Begin(step, trace_, &loss(), train_.cursor);
  return absl::OkStatus();
}

absl::StatusOr<bool> StepRunner::RunNext(bool busy) {
  const int next = cursor_->NextRunnable(busy);
  if (next < 0) return false;
  position_.GoOn();
  TROUPE_RETURN_IF_ERROR(Run(next));
  wait_->TakeNews(/*expected=*/false);
  return true;
}

absl::Status StepRunner::Run(int id) {
  const pipeline::Action& action = ActionOf(id);
  cursor_->Start(id);
  switch (action.kind) {
    case ActionKind::kForward:
      TROUPE_RETURN_IF_ERROR(RunForward(action));
      break;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInputs:
    case ActionKind::kBackwardWeights:
      TROUPE_RETURN_IF_ERROR(RunBackward(action));
      break;
    case ActionKind::kSendActivation:
    case ActionKind::kSendGradient:
      Send(action);
      break;
    case ActionKind::kReduceFindings:
      TROUPE_RETURN_IF_ERROR(Inspect(loss()));
      return Reduce(id);
    case ActionKind::kReduceTied:
      return ReduceTied(id);
    case ActionKind::kReduceLoss:
    case ActionKind::kReduceBucket:
    case ActionKind::kReduceUpdateBucket:
      return Reduce(id);  // finished by Reduced
    case ActionKind::kUpdateBucket:
      TROUPE_RETURN_IF_ERROR(Update(action, loss(), trace_));
      break;
    case ActionKind::kRecvActivation:
    case ActionKind::kRecvGradient:
      TROUPE_CHECK(false, "a receive is finished by Deliver()");
  }
  cursor_->Finish(id);
  return absl::OkStatus();
}

absl::Status StepRunner::RunForward(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  Chunk& chunk = ChunkOf(action);
  TROUPE_RETURN_IF_ERROR(chunk.Forward(action.index));
  if (!chunk.is_last()) return absl::OkStatus();
  if (kind_ == StepKind::kPredict) {
    return KeepOutput(chunk.output(action.index));
  }
  return loss().Add(action.index, chunk.output(action.index));
}

absl::Status StepRunner::RunBackward(const pipeline::Action& action) {
  // Gradients of the step before are still on their way.
  TROUPE_RETURN_IF_ERROR(FinishTail());
  const TraceScope scope(trace_, action);
  Chunk& chunk = ChunkOf(action);
  if (UpdatesInBackward()) chunk.UpdateInBackward();
  chunk.BeginBackward(action.index, ModeOf(action.kind));
  while (true) {
    // Buckets are launched and updated while the rest still runs.
    for (bool ran = true; ran;) {
      TROUPE_ASSIGN_OR_RETURN(ran, RunNext(/*busy=*/true));
    }
    TROUPE_ASSIGN_OR_RETURN(const bool more, chunk.NextPiece());
    if (!more) return absl::OkStatus();
    wait_->TakeNews(/*expected=*/reducer_.in_flight() > 0);
  }
}

void StepRunner::BucketReady(int chunk, int bucket) {
  // Here, and not when the reduction is launched: it must not wait for what is
  // enqueued in between, which may wait for the reduction's peers.
  events_->NoteReady(chunk, bucket);
  cursor_->Give({SignalKind::kBucketReady, bucket, chunk});
}

void StepRunner::BucketReleased(int chunk, int bucket) {
  events_->NoteReleased(chunk, bucket);
  cursor_->Give({SignalKind::kBucketReleased, bucket, chunk});
}

absl::StatusOr<comm::Collective> StepRunner::CollectiveOf(
    const pipeline::Action& action) {
  switch (action.kind) {
    case ActionKind::kReduceFindings:
      // Replicas have found the same.
      return loss().SumFindings(
          setup_.plan->mesh.CoordOf(setup_.rank, pipeline::kDpAxis) == 0);
    case ActionKind::kReduceBucket:
      return ChunkOf(action).Reduce(action.index);
    case ActionKind::kReduceUpdateBucket:
      return ChunkOf(action).ReduceUpdate(action.index);
    default:
      return loss().Sum();
  }
}

comm::Event StepRunner::ReadyOf(const pipeline::Action& action) const {
  switch (action.kind) {
    case ActionKind::kReduceLoss:
      return losses_[turn_].ready();
    case ActionKind::kReduceFindings:
      return losses_[turn_].found_ready();
    default:
      return events_->Ready(action.chunk, action.index);
  }
}

absl::Status StepRunner::Reduce(int id) {
  TROUPE_RETURN_IF_ERROR(tied_status_);
  const pipeline::Action& action = ActionOf(id);
  trace_.Begin(action);
  if (action.kind == ActionKind::kReduceBucket &&
      ChunkOf(action).IsUpdated(action.index)) {
    Reduced(id, comm::Event(), *cursor_, trace_);  // nothing is left of it
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(comm::Collective collective, CollectiveOf(action));
  // What the backward completes last, the next forward reads first.
  if (tail_) collective.priority = id;
  const absl::StatusOr<bool> done = reducer_.Start(
      id, pipeline::GroupOf(action.kind), collective, ReadyOf(action));
  if (!done.ok()) return CollectiveFailed(step_, id, done.status());
  if (*done) Reduced(id, comm::Event(), *cursor_, trace_);
  return absl::OkStatus();
}

absl::Status StepRunner::CollectiveFailed(std::int64_t step, int id,
                                          const absl::Status& why) const {
  // Ranks that came with different collectives, or did not come.
  if (!absl::IsFailedPrecondition(why) && !absl::IsDeadlineExceeded(why)) {
    return why;
  }
  return absl::Status(
      why.code(),
      absl::StrCat("step ", step + 1, ", ",
                   pipeline::PartOf(ActionOf(id), cursor_->table().chunks()),
                   ": ", why.message()));
}

void StepRunner::CollectiveDone(std::int64_t step, int id,
                                const comm::Event& done) {
  reducer_.Finish();
  if (tail_ && tail_->IsOf(step)) {
    Reduced(id, done, tail_->cursor(), tail_->trace());
  } else {
    Reduced(id, done, *cursor_, trace_);
  }
}

void StepRunner::Reduced(int id, const comm::Event& done,
                         pipeline::TableCursor& cursor, StepTrace& trace) {
  const pipeline::Action& action = cursor.table().actions[id];
  if (action.kind == ActionKind::kReduceTied) {
    return FinishTied(ties_.Of(action), done, cursor, trace);
  }
  if (action.kind == ActionKind::kReduceLoss) {
    losses_[turn_].NoteReduced(done);
    loss_reduced_ = true;
  } else if (action.kind == ActionKind::kReduceFindings) {
    losses_[turn_].NoteFindingsReduced(done);
  } else {
    events_->NoteReduced(action.chunk, action.index, done);
  }
  cursor.Finish(id);
  if (action.kind == ActionKind::kReduceUpdateBucket) {
    ChunkOf(action).ReleaseGrads(action.index);
  }
  if (const auto given = pipeline::SignalOf(action)) cursor.Give(*given);
  trace.End(action);
}

absl::Status StepRunner::Update(const pipeline::Action& action, StepLoss& loss,
                                StepTrace& trace) {
  const TraceScope scope(trace, action);
  TROUPE_RETURN_IF_ERROR(loss.PassToUpdates());
  if (setup_.plan->update_needs_all_buckets && !concluded_) {
    concluded_ = true;
    if (!inspected_) TROUPE_RETURN_IF_ERROR(Inspect(loss));
    TROUPE_RETURN_IF_ERROR(chunks_[0]->Conclude(loss.scalars()));
    TROUPE_RETURN_IF_ERROR(loss.Settle());
  }
  events_->BeginUpdate(action.chunk, action.index);
  TROUPE_RETURN_IF_ERROR(ChunkOf(action).Update(action.index, loss.scalars()));
  events_->EndUpdate(action.chunk, action.index);
  return absl::OkStatus();
}

absl::Status StepRunner::Inspect(StepLoss& loss) {
  inspected_ = true;
  TROUPE_RETURN_IF_ERROR(loss.PassToUpdates());
  events_->AwaitAllGradients();
  for (const auto& chunk : chunks_) {
    TROUPE_RETURN_IF_ERROR(chunk->Inspect(loss.scalars()));
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
