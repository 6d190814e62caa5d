#include "actors/strands/rank.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/caf/status_error.h"
#include "actors/engine/share_state.h"
#include "base/field_error.h"

namespace troupe::actors {

void RankState::Init(Self self, RankContextPtr context,
                     SupervisorActor supervisor, RankStrands strands) {
  self_ = self;
  context_ = std::move(context);
  trace_.emplace(context_->spec->trace, *context_->span, context_->rank,
                 TraceTrack::kRank);
  supervisor_ = std::move(supervisor);
  strands_ = std::move(strands);
  report_.emplace(*context_);
  self_->monitor(strands_.loader);
  self_->monitor(strands_.compute);
  self_->monitor(strands_.comm);
  granted_ = context_->span->first_step;
  LoadWindow::Options options;
  options.first = granted_;
  options.end = context_->span->steps;
  options.ahead_max = context_->spec->prefetch_steps;
  training_.emplace(options);
  LoadAhead(StepKind::kTrain);
}

RankState::~RankState() {
  if (context_ == nullptr) return;
  EndStrands(absl::CancelledError(
      absl::StrCat("rank ", context_->rank, " has ended")));
}

void RankState::EndStrands(const absl::Status& status) {
  if (std::exchange(ended_, true)) return;
  if (!status.ok()) {
    context_->groups.ForEach(
        [&](comm::Communicator& group) { group.Abort(status); });
  }
  const auto end = [](const auto& strand) {
    caf::anon_send_exit(strand, caf::exit_reason::user_shutdown);
  };
  end(strands_.loader);
  end(strands_.compute);
  end(strands_.comm);
}

void RankState::OnEndRank(const EndRank& end) {
  if (!IsCurrent(end.generation)) return;
  EndStrands(
      absl::Status(static_cast<absl::StatusCode>(end.code), end.message));
  self_->quit();
}

void RankState::Fail(const std::string& actor, const absl::Status& status) {
  if (std::exchange(failed_, true)) return;
  self_->send(supervisor_,
              MakeFailure(context_->generation, context_->rank, actor, status));
  EndStrands(absl::CancelledError(
      absl::StrCat("rank ", context_->rank, " has ended")));
}

void RankState::OnDown(const caf::down_msg& down) {
  if (ended_) return;
  const absl::Status status = FromError(self_->system(), down.reason);
  const char* actor = down.source == strands_.loader    ? "loader"
                      : down.source == strands_.compute ? "compute"
                                                        : "comm";
  Fail(actor, status);
}

LoadWindow* RankState::WindowOf(StepKind kind) {
  return kind == StepKind::kTrain ? &*training_ : &evaluation_->window();
}

void RankState::LoadAhead(StepKind kind) {
  while (auto request = WindowOf(kind)->NextRequest()) {
    self_
        ->request(strands_.loader, ActorTimeout(context_->spec->timeout),
                  *request)
        .then([this, kind, asked = request->count](
                  Loaded& loaded) { OnLoaded(kind, loaded, asked); },
              [this, first = request->first](const caf::error& error) {
                // The loader has reported its own failure; this is for a
                // time-out.
                const absl::Status status = FromError(self_->system(), error);
                Fail("loader",
                     base::WithMessage(
                         status, absl::StrCat("loading step ", first + 1, ": ",
                                              status.message())));
              });
  }
}

void RankState::OnLoaded(StepKind kind, Loaded& loaded, std::int64_t asked) {
  if (kind == StepKind::kEvaluate) evaluation_->CountTargets(loaded);
  WindowOf(kind)->OnLoaded(std::move(loaded), asked);
  LoadAhead(kind);
  Dispatch();
  if (kind == StepKind::kEvaluate) EndEvaluationIfDone();
}

void RankState::OnGrant(const Grant& grant) {
  if (!IsCurrent(grant.generation)) return;
  granted_ = std::max(granted_, grant.until);
  Dispatch();
}

void RankState::Dispatch() {
  const StepKind kind = evaluation_ ? StepKind::kEvaluate : StepKind::kTrain;
  // Batches of the test set need no grant.
  const std::int64_t until =
      evaluation_ ? std::numeric_limits<std::int64_t>::max() : granted_;
  while (runs_ < kRunsMax) {
    std::optional<RunSteps> run = WindowOf(kind)->NextRun(until);
    if (!run) return;
    ++runs_;
    self_->send(strands_.compute, *std::move(run));
    LoadAhead(kind);
  }
}

void RankState::OnStepsDone(const StepsDone& done) {
  --runs_;
  if (SharesState(done.kind)) {
    OnShared(done.kind);
    return;
  }
  if (done.kind == StepKind::kEvaluate) {
    OnBatchesEvaluated(done);
    return;
  }
  Progress progress;
  progress.generation = context_->generation;
  progress.rank = context_->rank;
  progress.first = done.first;
  progress.losses = done.losses;
  progress.peak_bytes = done.peak_bytes;
  self_->send(supervisor_, std::move(progress));
  Dispatch();
}

void RankState::OnEvaluate(const Evaluate& evaluate) {
  if (!IsCurrent(evaluate.generation)) return;
  trace_->Note(TraceKind::kEvaluation, TracePhase::kBegin, evaluate.step,
               "evaluate");
  evaluation_.emplace(evaluate.step, *context_);
  if (context_->plan->SharesBuffers(context_->rank)) {
    Share(StepKind::kShareBuffers, evaluate.step);
  }
  LoadAhead(StepKind::kEvaluate);
}

void RankState::Share(StepKind kind, std::int64_t step) {
  RunSteps run;
  run.kind = kind;
  run.first = step;
  ++runs_;
  self_->send(strands_.compute, std::move(run));
}

void RankState::OnShared(StepKind kind) {
  // Buffers that an evaluation needs may come before all that a copy needs.
  if (taking_ && kind == SharedForSnapshot(*context_->plan, context_->rank,
                                           taking_->in_place)) {
    CopyShard(*std::exchange(taking_, std::nullopt));
  }
  Dispatch();
  if (evaluation_) EndEvaluationIfDone();
}

void RankState::OnBatchesEvaluated(const StepsDone& done) {
  evaluation_->AddLosses(done);
  self_->send(supervisor_, Alive{context_->generation, context_->rank});
  Dispatch();
  EndEvaluationIfDone();
}

void RankState::EndEvaluationIfDone() {
  if (runs_ > 0 || !evaluation_->window().finished()) return;
  const Evaluated evaluated = evaluation_->Result();
  evaluation_.reset();
  trace_->Note(TraceKind::kEvaluation, TracePhase::kEnd, evaluated.step,
               "evaluate");
  self_->send(supervisor_, evaluated);
}

void RankState::OnTakeSnapshot(const TakeSnapshot& take) {
  if (!IsCurrent(take.generation)) return;
  if (const std::optional<StepKind> before =
          SharedForSnapshot(*context_->plan, context_->rank, take.in_place)) {
    Share(*before, take.step);
    taking_ = take;
  } else {
    CopyShard(take);
  }
}

void RankState::CopyShard(const TakeSnapshot& take) {
  if (!take.copies && !take.compares) {
    self_->send(
        supervisor_,
        SnapshotTaken{context_->generation, context_->rank, take.step, {}});
    return;
  }
  trace_->Note(TraceKind::kCheckpoint, TracePhase::kBegin, take.step, "copy");
  self_
      ->request(strands_.compute, ActorTimeout(context_->spec->timeout),
                snapshot_atom::value, take)
      .then(
          [this, copies = take.copies](const SnapshotPtr& snapshot) {
            trace_->Note(TraceKind::kCheckpoint, TracePhase::kEnd,
                         snapshot->step, "copy");
            if (copies) snapshot_ = snapshot;
            self_->send(supervisor_,
                        SnapshotTaken{context_->generation, context_->rank,
                                      snapshot->step, snapshot->hashes});
          },
          [this](const caf::error& error) {
            Fail("compute", FromError(self_->system(), error));
          });
}

void RankState::OnSaveShard(const SaveShard& save) {
  if (!IsCurrent(save.generation)) return;
  if (snapshot_ == nullptr || snapshot_->step != save.step) {
    Fail("rank",
         absl::InternalError(absl::StrCat("asked to save step ", save.step,
                                          ", of which it has no "
                                          "copy")));
    return;
  }
  self_->send(strands_.checkpointer,
              WriteShard{save, context_->coords.pp, std::move(snapshot_)});
  snapshot_ = nullptr;
}

void RankState::OnAskWaits(const AskWaits& ask) {
  if (!IsCurrent(ask.generation) || self_->current_sender() == nullptr) return;
  RankWaits answer = report_->Make(std::chrono::steady_clock::now());
  if (answer.waits.empty() && (failed_ || !answer.busy)) DescribeRest(answer);
  caf::anon_send(caf::actor_cast<caf::actor>(self_->current_sender()),
                 std::move(answer));
}

void RankState::DescribeRest(RankWaits& answer) const {
  answer.busy = false;
  if (failed_) {
    answer.doing = "stopped, since it has failed";
  } else if (runs_ > 0) {
    answer.doing = "about to compute";
    answer.busy = true;
  } else if (evaluation_ && !evaluation_->window().finished()) {
    answer.doing =
        absl::StrCat("waiting for its loader, for batch ",
                     evaluation_->window().next_run(), " of an evaluation");
    answer.busy = true;
  } else if (training_->next_run() < granted_) {
    answer.doing = absl::StrCat("waiting for its loader, for step ",
                                training_->next_run() + 1);
    answer.busy = true;
  } else {
    answer.doing = "idle, all granted steps done";
  }
}

RankActor::behavior_type RankBehavior(RankState::Self self,
                                      RankContextPtr context,
                                      SupervisorActor supervisor,
                                      RankStrands strands) {
  GuardStrand(self, FailureSource{supervisor, context->generation,
                                  context->rank, "rank"});
  self->set_down_handler(
      [=](caf::down_msg& down) { self->state.OnDown(down); });
  self->state.Init(self, std::move(context), std::move(supervisor),
                   std::move(strands));
  return {
      [=](const Grant& grant) { self->state.OnGrant(grant); },
      [=](const StepsDone& done) { self->state.OnStepsDone(done); },
      [=](const Evaluate& evaluate) { self->state.OnEvaluate(evaluate); },
      [=](const TakeSnapshot& take) { self->state.OnTakeSnapshot(take); },
      [=](const SaveShard& save) { self->state.OnSaveShard(save); },
      [=](const AskWaits& ask) { self->state.OnAskWaits(ask); },
      [=](const EndRank& end) { self->state.OnEndRank(end); },
  };
}

}  // namespace troupe::actors
