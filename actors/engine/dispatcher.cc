#include "actors/engine/dispatcher.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {

using pipeline::SignalKind;

Dispatcher::Dispatcher(Options options, const EngineParts& parts,
                       StepActions actions, Inbox& inbox, StepLosses& losses,
                       StepTrace& trace)
    : parts_(parts),
      actions_(std::move(actions)),
      inbox_(inbox),
      losses_(losses),
      trace_(trace),
      train_(options.train, options.buckets, &trace),
      evaluate_(options.evaluate, options.buckets, &trace) {
  if (parts.overlaps_steps) {
    earlier_.emplace(options.train, options.buckets, nullptr);
  }
  const EngineSetup& setup = parts.setup;
  if (!setup.plan->gathers_values()) return;
  train_values_.emplace(options.train, *setup.plan, setup.rank);
  evaluate_values_.emplace(options.evaluate, *setup.plan, setup.rank);
}

absl::Status Dispatcher::Begin(StepKind kind, std::int64_t step,
                               StepBatches batches) {
  const bool trains = kind == StepKind::kTrain;
  if (!trains) {
    TROUPE_RETURN_IF_ERROR(FinishEarlier());
    parts_.events.AwaitAllUpdates();
  }
  present_ = trains ? &train_ : &evaluate_;
  TROUPE_CHECK(static_cast<int>(batches.size()) ==
                   present_->cursor.table().micro_batches(),
               "a step has one batch per micro-batch");
  present_->Begin(kind, step, trains ? &losses_.Next() : &losses_.present());
  parts_.position.BeginStep(kind, step);
  trace_.BeginStep(kind, step);
  TROUPE_RETURN_IF_ERROR(present_->loss->BeginStep(
      kind, step, parts_.parameters[0]->ScalarsOf(step)));
  const auto& chunks = parts_.chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const bool last = c + 1 == chunks.size();
    chunks[c]->BeginStep(kind, step, last ? std::move(batches) : batches);
  }
  return inbox_.BeginStep(*this);
}

absl::Status Dispatcher::RunStep(StepKind kind, std::int64_t step,
                                 StepBatches batches) {
  TROUPE_RETURN_IF_ERROR(Begin(kind, step, std::move(batches)));
  TROUPE_RETURN_IF_ERROR(Walk());
  TROUPE_RETURN_IF_ERROR(FinishEarlier());
  if (present_->cursor.complete()) return EndStep(*present_);
  HandOver();
  return absl::OkStatus();
}

void Dispatcher::HandOver() {
  earlier_->TakeOver(train_, &earlier_trace_.emplace(trace_));
}

absl::Status Dispatcher::Walk() {
  StepInFlight& step = *present_;
  const bool hands_over = step.kind == StepKind::kTrain && earlier_.has_value();
  while (hands_over ? !step.cursor.draining() : !step.cursor.complete()) {
    TROUPE_ASSIGN_OR_RETURN(bool ran, RunNext(step, /*busy=*/false));
    if (!ran) {
      TROUPE_ASSIGN_OR_RETURN(ran, AdvanceEarlier());
    }
    if (ran) continue;
    if (parts_.wait.quiet()) {
      return absl::FailedPreconditionError(
          "the step waits for other strands of the host");
    }
    NoteWait(step);
    parts_.wait.AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::EndStep(StepInFlight& step) {
  step.under_way = false;
  // The earlier step may end in the middle of the present one.
  if (step.kind == present_->kind && step.step == present_->step) {
    parts_.position.EndStep();
  }
  TROUPE_RETURN_IF_ERROR(step.loss->EndStep());
  return parts_.host.StepDone(step.kind, step.step);
}

bool Dispatcher::recordable() const {
  const auto& actions = train_.cursor.table().actions;
  return std::all_of(actions.begin(), actions.end(), [&](const auto& action) {
    const auto& object = actions_[static_cast<int>(action.kind)];
    return object != nullptr && object->recordable();
  });
}

absl::StatusOr<bool> Dispatcher::RunNext(StepInFlight& step, bool busy) {
  const int next = step.cursor.NextRunnable(busy);
  if (next < 0) return false;
  parts_.position.GoOn();
  TROUPE_RETURN_IF_ERROR(Run(step, next));
  parts_.wait.TakeNews(/*expected=*/false);
  return true;
}

absl::Status Dispatcher::Run(StepInFlight& step, int id) {
  StepAction* const action =
      actions_[static_cast<int>(step.ActionAt(id).kind)].get();
  TROUPE_CHECK(action != nullptr, "a receive ends with its message");
  step.cursor.Start(id);
  if (pipeline::IsCompute(step.ActionAt(id).kind)) step.computing = id;
  reducing_ += pipeline::ReducesBucket(step.ActionAt(id).kind);
  const StepInFlight* const outer = std::exchange(beginning_, &step);
  const absl::StatusOr<StepAction::Progress> progress =
      action->Begin(id, step, *this);
  beginning_ = outer;
  if (!progress.ok()) return progress.status();
  if (*progress == StepAction::Progress::kDone) Finish(step, id);
  return absl::OkStatus();
}

void Dispatcher::Finish(StepInFlight& step, int id) {
  const pipeline::Action& action = step.ActionAt(id);
  step.cursor.Finish(id);
  reducing_ -= pipeline::ReducesBucket(action.kind);
  if (const auto given = pipeline::SignalAtEnd(action, step.index)) {
    step.cursor.Give(*given);
  }
  // A collective's span began with its start; other actions trace themselves.
  if (pipeline::IsCollective(action.kind)) step.trace->End(action);
}

absl::Status Dispatcher::CollectiveDone(std::int64_t step, int id,
                                        const base::Event& done) {
  parts_.reducer.Finish();
  StepInFlight& whose = IsEarlier(step) ? *earlier_ : *present_;
  const int kind = static_cast<int>(whose.ActionAt(id).kind);
  TROUPE_RETURN_IF_ERROR(actions_[kind]->End(id, whose, *this, done));
  Finish(whose, id);
  return absl::OkStatus();
}

absl::StatusOr<bool> Dispatcher::AdvanceEarlier(int preferred) {
  if (!has_earlier()) return false;
  StepInFlight& step = *earlier_;
  const int next = preferred >= 0 && step.cursor.Runnable(preferred)
                       ? preferred
                       : step.cursor.NextRunnable(/*busy=*/true);
  if (next >= 0) TROUPE_RETURN_IF_ERROR(Run(step, next));
  if (step.cursor.complete()) {
    TROUPE_RETURN_IF_ERROR(EndStep(step));
  } else if (next < 0) {
    return false;
  }
  parts_.wait.TakeNews(/*expected=*/false);
  return true;
}

absl::Status Dispatcher::FinishEarlier() {
  while (has_earlier()) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceEarlier());
    if (!ran) parts_.wait.AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::FinishEarlierGathers() {
  const pipeline::Plan& plan = *parts_.setup.plan;
  return plan.owners() > 1 ? FinishEarlier() : absl::OkStatus();
}

void Dispatcher::BucketReady(int chunk, int bucket, int micro_batch) {
  // Records the event here, not when the reduction is launched: the reduction
  // must not wait for work that is enqueued in between, which may itself wait
  // for peers of the reduction.
  parts_.events.NoteReady(chunk, bucket);
  present_->cursor.Give({SignalKind::kBucketReady, bucket, chunk, micro_batch});
}

void Dispatcher::BucketReleased(int chunk, int bucket) {
  parts_.events.NoteReleased(chunk, bucket);
  present_->cursor.Give({SignalKind::kBucketReleased, bucket, chunk});
}

absl::Status Dispatcher::AwaitUpdate(int chunk, int bucket) {
  parts_.events.AwaitUpdate(chunk, bucket);
  if (!has_earlier()) return absl::OkStatus();
  const int maker = pipeline::MakerOf(earlier_->index, bucket, chunk);
  while (has_earlier() && !earlier_->IsDone(maker)) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceEarlier(maker));
    if (!ran) parts_.wait.AwaitNews();
  }
  return absl::OkStatus();
}

// One bucket is reduced while the gradients of the next are computed. With
// other stages, which may wait for this one meanwhile, there is no limit. Nor
// is there one for reductions that have not begun: they may wait for a bucket
// that this backward completes later.
absl::Status Dispatcher::AwaitMemory() {
  if (parts_.setup.plan->stages.size() > 1) return absl::OkStatus();
  while (true) {
    for (bool ran = true; ran;) {
      TROUPE_ASSIGN_OR_RETURN(ran, RunNext(*present_, /*busy=*/true));
    }
    if (reducing_ < 2) return absl::OkStatus();
    parts_.wait.AwaitNews();
  }
}

absl::Status Dispatcher::AwaitGather(int chunk,
                                     const nn::Parameter& parameter) {
  StepInFlight& step = *present_;
  const auto& turns = present_ == &train_ ? train_values_ : evaluate_values_;
  const int bucket = parts_.parameters[chunk]->BucketOf(parameter);
  TROUPE_ASSIGN_OR_RETURN(const ValueTurns::Wait wait,
                          turns->WaitFor(step, chunk, parameter, bucket));
  while (true) {
    for (const ValueTurns::Turn& turn : wait.passed) {
      if (!step.IsDone(turn.gather) || step.IsDone(turn.release)) continue;
      TROUPE_RETURN_IF_ERROR(Run(step, turn.release));
    }
    // Gathers behind this one may begin while the reader runs.
    TROUPE_ASSIGN_OR_RETURN(const bool ran, RunNext(step, /*busy=*/true));
    if (ran) continue;
    if (step.IsDone(wait.gather)) return absl::OkStatus();
    parts_.wait.AwaitNews();
  }
}

// Tensors arrive in the order of the table, so the first receive that has not
// ended is the one that delays the rest.
void Dispatcher::NoteWait(const StepInFlight& step) {
  const auto& actions = step.cursor.table().actions;
  for (int id = 0; id < static_cast<int>(actions.size()); ++id) {
    const pipeline::Action& action = actions[id];
    if (!pipeline::IsReceive(action.kind) || step.IsDone(id)) continue;
    parts_.position.Await({pipeline::IsOfForward(action.kind), action.index,
                           parts_.ChunkOf(action).stage()});
    return;
  }
  parts_.position.GoOn();
}

std::string Dispatcher::Unfinished() const {
  const bool present = present_->under_way;
  if (!has_earlier()) return present ? present_->cursor.Unfinished() : "";
  std::string left = earlier_->cursor.Unfinished();
  if (present) {
    absl::StrAppend(&left, " of step ", earlier_->step + 1, ", ",
                    present_->cursor.Unfinished());
  }
  return left;
}

}  // namespace troupe::actors
