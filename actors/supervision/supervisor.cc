#include "actors/supervision/supervisor.h"

#include <utility>

#include "actors/protocol/strand_guard.h"

namespace troupe::actors {

void SupervisorState::Init(Self self, ProcessContextPtr process, CrewPtr crew) {
  self_ = self;
  process_ = std::move(process);
  crew_ = std::move(crew);
  start_ = self->clock().now();
  watchdog_ = Watchdog(process_->spec->timeout);
  grants_.emplace(process_->plan->mesh.size(), process_->span->first_step,
                  process_->hooks ? process_->hooks->window_max : 0);
  saving_.Init(self, process_, crew_);
  diagnosis_.Init(self, process_, crew_);
  due_.emplace(process_->spec, process_->span, process_->resume.evaluations);
  absl::StatusOr<std::unique_ptr<nn::Optimizer>> optimizer =
      MakeOptimizer(*process_->spec);
  if (!optimizer.ok()) Fail(/*rank=*/-1, "supervisor", optimizer.status());
  reports_.emplace(process_->span, process_->spec->loss_reduction,
                   std::move(optimizer).value_or(nullptr),
                   /*observed=*/process_->observer != nullptr);
}

double SupervisorState::Seconds() const {
  return std::chrono::duration<double>(self_->clock().now() - start_).count();
}

bool SupervisorState::IsCurrent(std::int32_t generation) const {
  return generation == process_->generation && doing_ < Doing::kFailing;
}

bool SupervisorState::MaySave(std::int32_t generation) const {
  return generation == process_->generation && doing_ != Doing::kEnded;
}

void SupervisorState::OnBegin() {
  doing_ = Doing::kSteps;
  if (diagnosis_.kept()) {
    OnFailure(*diagnosis_.kept());
    return;
  }
  // The coordinator began an incomplete crew because the job has failed, and
  // sends that failure next.
  if (!crew_->IsComplete()) return;
  crew_->Monitor(self_);
  watchdog_.Kick(self_->clock().now());
  Watch();
  grants_->SetBoundary(due_->NextBoundary(Committed()));
  if (AtEnd() || due_->EvaluationAt(Committed(), grants_->halted())) {
    AtBoundary();
  } else {
    GrantSteps();
  }
}

void SupervisorState::GrantSteps() {
  if (doing_ != Doing::kSteps || reports_->full()) return;
  const std::optional<std::int64_t> until = grants_->Next();
  if (until) crew_->SendToRanks(self_, Grant{process_->generation, *until});
}

void SupervisorState::OnProgress(const Progress& progress) {
  if (!IsFromRank(progress, "progress")) return;
  watchdog_.Kick(self_->clock().now());
  reports_->Note(progress);
  // Losses are summed over all ranks, so rank 0's are those of the job.
  if (progress.rank == 0 && !progress.losses.empty()) {
    result_.loss = reports_->AddSteps(progress, Seconds());
    SendReports();
  }
  grants_->Commit(
      progress.rank,
      progress.first + static_cast<std::int64_t>(progress.losses.size()),
      Seconds());
  if (doing_ != Doing::kSteps) return;
  if (saving_.IsOverdue()) grants_->StopAtGranted();
  if (grants_->AtBoundary()) {
    AtBoundary();
  } else {
    GrantSteps();
  }
}

void SupervisorState::OnAlive(const Alive& alive) {
  if (IsCurrent(alive.generation)) watchdog_.Kick(self_->clock().now());
}

bool SupervisorState::CheckpointDue() const {
  const std::int64_t step = Committed();
  return saving_.snapshot_step() != step &&
         (due_->CheckpointAt(step, grants_->halted()) || saving_.IsOverdue());
}

void SupervisorState::AtBoundary() {
  const TestHooks* const hooks = process_->hooks;
  if (hooks != nullptr && hooks->at_boundary) hooks->at_boundary(Committed());
  doing_ = Doing::kSteps;
  const bool evaluate = due_->EvaluationAt(Committed(), grants_->halted());
  const bool save = CheckpointDue();
  // Otherwise OnCheckpointSaved() calls again once the previous is written.
  if (save && !saving_.active()) saving_.Begin(Committed());
  const EvaluationTrack& track = due_->track();
  if (!evaluate || !track.active()) {
    saving_.SetEvaluations(Committed(), due_->StateAt(Committed()));
  }
  if (save) {
    doing_ = Doing::kSaving;
  } else if (evaluate) {
    BeginEvaluation();
  } else if (AtEnd() && saving_.active()) {
    doing_ = Doing::kSaving;
  } else if (AtEnd()) {
    due_->SetEnd(Committed(), result_);
    result_.seconds = Seconds();
    End(result_);
  } else {
    grants_->SetBoundary(due_->NextBoundary(Committed()));
    // Time spent at the boundary is excluded from the steps' durations.
    const double now = Seconds();
    grants_->Restart(now);
    reports_->Restart(now);
    GrantSteps();
  }
}

void SupervisorState::BeginEvaluation() {
  doing_ = Doing::kEvaluating;
  evaluation_.Begin(Committed(), grants_->ranks());
  crew_->SendToRanks(self_, Evaluate{process_->generation, Committed()});
}

void SupervisorState::OnEvaluated(const Evaluated& evaluated) {
  if (!IsFromRank(evaluated, "an evaluation")) return;
  if (!evaluation_.Add(evaluated)) return;
  watchdog_.Kick(self_->clock().now());
  if (!evaluation_.complete()) return;
  const EvaluationReport report =
      evaluation_.End(process_->spec->loss_reduction);
  result_.evaluation = report;
  due_->Add(report);
  if (due_->track().best_step() == report.step) result_.best = report;
  reports_->Add(report);
  SendReports();
  AtBoundary();
}

void SupervisorState::OnSnapshotTaken(const SnapshotTaken& taken) {
  if (!IsFromRank(taken, "a snapshot")) return;
  watchdog_.Kick(self_->clock().now());
  if (!saving_.OnSnapshotTaken(taken)) return;
  if (saving_.replicas().ok()) {
    AtBoundary();  // training goes on while the disks are busy
  } else {
    Fail(/*rank=*/-1, "supervisor", saving_.replicas());
  }
}

void SupervisorState::OnCheckpointOpened(const CheckpointOpened& opened) {
  if (MaySave(opened.generation)) saving_.OnCheckpointOpened(opened);
}

void SupervisorState::OnShardSaved(const ShardSaved& saved) {
  if (MaySave(saved.generation)) saving_.OnShardSaved(saved);
}

void SupervisorState::OnCheckpointSaved(const CheckpointSaved& saved) {
  if (!MaySave(saved.generation) || !saving_.OnCheckpointSaved(saved)) return;
  watchdog_.Kick(self_->clock().now());
  result_.checkpoint = saved.path;
  reports_->Add(CheckpointReport{saved.step, saved.path});
  SendReports();
  if (doing_ == Doing::kSaving) AtBoundary();
  EndIfRipe();
}

void SupervisorState::SendReports() {
  std::optional<std::vector<Report>> batch = reports_->Next();
  if (batch) self_->send(crew_->reporter, *std::move(batch));
}

void SupervisorState::OnReported() {
  reports_->Delivered();
  if (doing_ == Doing::kEnded) return;
  SendReports();
  GrantSteps();
}

void SupervisorState::OnHalt() {
  if (grants_->halted() || doing_ >= Doing::kFailing) return;
  grants_->Halt();
  // Every rank finishes what was granted; OnProgress then ends the job.
  if (doing_ == Doing::kSteps && grants_->AllDone()) AtBoundary();
}

SupervisorActor::behavior_type SupervisorBehavior(SupervisorState::Self self,
                                                  ProcessContextPtr process,
                                                  CrewPtr crew) {
  self->state.Init(self, std::move(process), std::move(crew));
  self->set_down_handler(
      [=](caf::down_msg& down) { self->state.OnDown(down); });
  TellExceptions(self, [=](const absl::Status& status) {
    self->state.OnException(status);
  });
  return {
      [=](begin_atom) { self->state.OnBegin(); },
      [=](const Progress& progress) { self->state.OnProgress(progress); },
      [=](const Alive& alive) { self->state.OnAlive(alive); },
      [=](const Evaluated& evaluated) { self->state.OnEvaluated(evaluated); },
      [=](const SnapshotTaken& taken) { self->state.OnSnapshotTaken(taken); },
      [=](const CheckpointOpened& opened) {
        self->state.OnCheckpointOpened(opened);
      },
      [=](const ShardSaved& saved) { self->state.OnShardSaved(saved); },
      [=](const CheckpointSaved& saved) {
        self->state.OnCheckpointSaved(saved);
      },
      [=](const Failure& failure) { self->state.OnFailure(failure); },
      [=](const RankWaits& answer) { self->state.OnRankWaits(answer); },
      [=](halt_atom) { self->state.OnHalt(); },
      [=](reported_atom) { self->state.OnReported(); },
      [=](watch_atom) { self->state.OnWatch(); },
      [=](ask_atom) { self->state.OnAsk(); },
  };
}

}  // namespace troupe::actors
