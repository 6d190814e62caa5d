#include "actors/supervision/supervisor.h"

#include <algorithm>
#include <utility>

#include "actors/protocol/strand_guard.h"

namespace troupe::actors {

void SupervisorState::Init(Self self, ProcessContextPtr process, CrewPtr crew) {
  self_ = self;
  process_ = std::move(process);
  crew_ = std::move(crew);
  milestones_.emplace(process_->spec, process_->span);
  start_ = self->clock().now();
  const std::int64_t first = process_->span->first_step;
  window_.emplace(first, process_->hooks ? process_->hooks->window_max : 0);
  done_.assign(process_->plan->mesh.size(), first);
  granted_ = first;
  saving_.Init(self, process_, crew_);
  track_.emplace(process_->spec, process_->resume.evaluations);
  absl::StatusOr<std::unique_ptr<nn::Optimizer>> optimizer =
      MakeOptimizer(*process_->spec);
  if (!optimizer.ok()) Fail(/*rank=*/-1, "supervisor", optimizer.status());
  step_reports_.emplace(*process_->plan, process_->spec->loss_reduction,
                        std::move(optimizer).value_or(nullptr));
}

double SupervisorState::Seconds() const {
  return std::chrono::duration<double>(self_->clock().now() - start_).count();
}

bool SupervisorState::CrewIsComplete() const {
  return std::count(crew_->ranks.begin(), crew_->ranks.end(), nullptr) == 0;
}

std::int64_t SupervisorState::Committed() const {
  return *std::min_element(done_.begin(), done_.end());
}

bool SupervisorState::IsCurrent(std::int32_t generation) const {
  return generation == process_->generation && doing_ < Doing::kFailing;
}

bool SupervisorState::MaySave(std::int32_t generation) const {
  return generation == process_->generation && doing_ != Doing::kEnded;
}

void SupervisorState::OnBegin() {
  begun_ = true;
  if (early_failure_) {
    OnFailure(*early_failure_);
    return;
  }
  // The coordinator began an incomplete crew because the job has failed, and
  // sends that failure next.
  if (!CrewIsComplete()) return;
  for (const RankActor& rank : crew_->ranks) self_->monitor(rank);
  for (const CheckpointerActor& each : crew_->checkpointers) {
    self_->monitor(each);
  }
  self_->monitor(crew_->reporter);
  last_sign_ = self_->clock().now();
  Watch();
  boundary_ = milestones_->After(Committed());
  AtEnd() || EvaluationDue() ? AtBoundary() : GrantSteps();
}

void SupervisorState::GrantSteps() {
  if (halted_ || doing_ != Doing::kSteps || reports_.full()) return;
  // Grants reach two windows ahead of the slowest rank, so that no rank idles.
  const std::int64_t until =
      std::min(boundary_, Committed() + 2 * window_->steps());
  if (until < granted_ + window_->steps() && until != boundary_) return;
  if (until == granted_) return;
  granted_ = until;
  for (const RankActor& rank : crew_->ranks) {
    self_->send(rank, Grant{process_->generation, until});
  }
}

void SupervisorState::OnProgress(const Progress& progress) {
  if (!IsFromRank(progress, "progress")) return;
  last_sign_ = self_->clock().now();
  step_reports_->Note(progress);
  done_[progress.rank] =
      progress.first + static_cast<std::int64_t>(progress.losses.size());
  // Losses are summed over all ranks, so rank 0's are those of the job.
  if (progress.rank == 0) ReportSteps(progress);
  const std::int64_t committed = Committed();
  window_->Adapt(committed, Seconds());
  if (doing_ != Doing::kSteps) return;
  // No rank runs beyond the granted steps, so all of them can save there.
  if (saving_.IsOverdue()) boundary_ = granted_;
  if (committed == (halted_ ? granted_ : boundary_)) {
    AtBoundary();
  } else {
    GrantSteps();
  }
}

void SupervisorState::OnAlive(const Alive& alive) {
  if (IsCurrent(alive.generation)) last_sign_ = self_->clock().now();
}

void SupervisorState::ReportSteps(const Progress& progress) {
  if (progress.losses.empty()) return;
  std::vector<StepReport> reports = step_reports_->Make(progress, Seconds());
  result_.loss = reports.back().loss;
  reports_.AddSteps(std::move(reports));
  SendReports();
}

bool SupervisorState::AtEnd() const {
  return halted_ || track_->HasConverged() ||
         Committed() >= process_->span->steps;
}

bool SupervisorState::EvaluationDue() const {
  const std::int64_t step = Committed();
  if (process_->spec->test == nullptr || evaluated_at_ == step) return false;
  // A stop postpones an evaluation that is due, unless all steps are done.
  if (step >= process_->span->steps) return true;
  return !AtEnd() && IsPlannedEvaluation();
}

bool SupervisorState::IsPlannedEvaluation() const {
  const std::int64_t step = Committed();
  return milestones_->EvaluationAt(step) ||
         (step == process_->span->first_step && track_->due());
}

std::optional<EvaluationState> SupervisorState::EvaluationsNow() const {
  return track_->StateWith(
      /*due=*/evaluated_at_ != Committed() && IsPlannedEvaluation());
}

bool SupervisorState::CheckpointDue() const {
  const std::int64_t step = Committed();
  if (process_->spec->checkpoint.dir.empty() ||
      saving_.snapshot_step() == step) {
    return false;
  }
  const bool is_best = process_->spec->checkpoint.keep_best &&
                       evaluated_at_ == step && track_->best_step() == step;
  return is_best || AtEnd() || milestones_->CheckpointAt(step) ||
         saving_.IsOverdue();
}

void SupervisorState::AtBoundary() {
  const TestHooks* const hooks = process_->hooks;
  if (hooks != nullptr && hooks->at_boundary) hooks->at_boundary(Committed());
  doing_ = Doing::kSteps;
  const bool evaluate = EvaluationDue();
  const bool save = CheckpointDue();
  // Otherwise OnCheckpointSaved() calls again once the previous is written.
  if (save && !saving_.active()) saving_.Begin(Committed());
  if (!evaluate || !track_->active()) {
    saving_.SetEvaluations(Committed(), EvaluationsNow());
  }
  if (save) {
    doing_ = Doing::kSaving;
  } else if (evaluate) {
    BeginEvaluation();
  } else if (AtEnd() && saving_.active()) {
    doing_ = Doing::kSaving;
  } else if (AtEnd()) {
    result_.steps = Committed();
    if (Committed() < process_->span->steps) {
      if (track_->HasConverged()) result_.converged = track_->ToString();
      result_.stopped = !track_->HasConverged();
    }
    result_.seconds = Seconds();
    End(result_);
  } else {
    boundary_ = milestones_->After(Committed());
    // Time spent at the boundary is excluded from the steps' durations.
    const double now = Seconds();
    window_->Restart(now);
    step_reports_->Restart(now);
    GrantSteps();
  }
}

void SupervisorState::BeginEvaluation() {
  doing_ = Doing::kEvaluating;
  evaluations_.clear();
  for (const RankActor& rank : crew_->ranks) {
    self_->send(rank, Evaluate{process_->generation, Committed()});
  }
}

void SupervisorState::OnEvaluated(const Evaluated& evaluated) {
  if (!IsFromRank(evaluated, "an evaluation") || doing_ != Doing::kEvaluating ||
      evaluated.step != Committed()) {
    return;
  }
  last_sign_ = self_->clock().now();
  evaluations_.push_back(evaluated);
  if (evaluations_.size() < crew_->ranks.size()) return;
  const EvaluationReport report = SumOf(
      evaluated.step, process_->spec->loss_reduction, std::move(evaluations_));
  result_.evaluation = report;
  track_->Add(report, /*counts=*/IsPlannedEvaluation());
  if (track_->best_step() == report.step) result_.best = report;
  evaluated_at_ = report.step;
  reports_.Add(report);
  SendReports();
  AtBoundary();
}

void SupervisorState::OnSnapshotTaken(const SnapshotTaken& taken) {
  if (!IsFromRank(taken, "a snapshot")) return;
  last_sign_ = self_->clock().now();
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
  last_sign_ = self_->clock().now();
  result_.checkpoint = saved.path;
  reports_.Add(CheckpointReport{saved.step, saved.path});
  SendReports();
  if (doing_ == Doing::kSaving) AtBoundary();
  EndIfRipe();
}

void SupervisorState::SendReports() {
  if (process_->observer == nullptr) reports_.Take();
  if (reporting_ || reports_.empty()) return;
  reporting_ = true;
  self_->send(crew_->reporter, reports_.Take());
}

void SupervisorState::OnReported() {
  reporting_ = false;
  if (doing_ == Doing::kEnded) return;
  SendReports();
  GrantSteps();
}

void SupervisorState::OnHalt() {
  if (halted_ || doing_ >= Doing::kFailing) return;
  halted_ = true;
  if (!begun_) return;
  // Every rank finishes what was granted; OnProgress then ends the job.
  if (doing_ == Doing::kSteps && Committed() == granted_) AtBoundary();
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
