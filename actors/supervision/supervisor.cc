#include "actors/supervision/supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/caf/status_error.h"
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
  if (CheckpointDue() && !(evaluate && track_->active())) {
    doing_ = Doing::kSaving;
    // Otherwise OnCheckpointSaved() calls again once the previous is written.
    if (!saving_.active()) saving_.Begin(Committed(), EvaluationsNow());
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
  if (saving_.OnSnapshotTaken(taken)) {
    AtBoundary();  // training goes on while the disks are busy
  }
}

void SupervisorState::OnCheckpointOpened(const CheckpointOpened& opened) {
  if (IsCurrent(opened.generation)) saving_.OnCheckpointOpened(opened);
}

void SupervisorState::OnShardSaved(const ShardSaved& saved) {
  if (IsCurrent(saved.generation)) saving_.OnShardSaved(saved);
}

void SupervisorState::OnCheckpointSaved(const CheckpointSaved& saved) {
  if (!IsCurrent(saved.generation) || !saving_.OnCheckpointSaved(saved)) return;
  last_sign_ = self_->clock().now();
  result_.checkpoint = saved.path;
  reports_.Add(CheckpointReport{saved.step, saved.path});
  SendReports();
  if (after_saving_) {
    Judge(*after_saving_);
  } else if (doing_ == Doing::kSaving) {
    AtBoundary();
  }
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

void SupervisorState::Watch() {
  const TimePoint since =
      saving_.active() ? std::min(last_sign_, saving_.last_sign()) : last_sign_;
  const auto left =
      since + ActorTimeout(process_->spec->timeout) - self_->clock().now();
  self_->delayed_send(self_, std::max(left, TimePoint::duration(1)),
                      watch_atom::value);
}

std::string SupervisorState::WhereRanksStand() const {
  std::string where;
  for (std::size_t rank = 0; rank < done_.size(); ++rank) {
    absl::StrAppend(&where, rank ? ", " : "", "rank ", rank, " has done ",
                    done_[rank]);
  }
  return absl::StrCat(where, " of ", granted_, " granted steps");
}

void SupervisorState::OnWatch() {
  if (doing_ >= Doing::kFailing) return;
  const TimePoint now = self_->clock().now();
  const auto timeout = ActorTimeout(process_->spec->timeout);
  const std::string how_long = absl::FormatDuration(process_->spec->timeout);
  // Ranks that wait for the observer or for a checkpoint are not silent.
  if (reports_.full() || (doing_ == Doing::kSaving && saving_.HasSnapshots())) {
    last_sign_ = now;
  }
  if (saving_.active() && now - saving_.last_sign() >= timeout) {
    Fail(-1, "checkpointer",
         absl::DeadlineExceededError(absl::StrCat(
             "no progress for ", how_long, " (", saving_.ToString(), ")")));
  } else if (now - last_sign_ >= timeout) {
    Fail(-1, "supervisor",
         absl::DeadlineExceededError(absl::StrCat(
             "no progress for ", how_long, " (", WhereRanksStand(), ")")));
  } else {
    Watch();
  }
}

void SupervisorState::OnDown(const caf::down_msg& down) {
  // A process is lost, or has left. The coordinator reports which, and why; a
  // failure from here would come sooner, but with less information.
  if (process_->roster != nullptr &&
      (!down.reason || down.reason == caf::exit_reason::user_shutdown ||
       down.reason == caf::exit_reason::remote_link_unreachable)) {
    return;
  }
  absl::Status status = FromError(self_->system(), down.reason);
  if (status.ok()) status = absl::InternalError("ended before the job");
  for (std::size_t rank = 0; rank < crew_->ranks.size(); ++rank) {
    if (down.source != crew_->ranks[rank]) continue;
    Fail(static_cast<int>(rank), "rank", status);
    return;
  }
  Fail(-1, down.source == crew_->reporter ? "observer" : "checkpointer",
       status);
}

void SupervisorState::Fail(int rank, const std::string& actor,
                           const absl::Status& status) {
  OnFailure(MakeFailure(process_->generation, rank, actor, status));
}

void SupervisorState::OnFailure(const Failure& failure) {
  if (failure.generation != process_->generation) return;
  if (doing_ == Doing::kFailing) {
    verdict_->Add(failure);
    EndIfRipe();
  }
  if (doing_ >= Doing::kFailing) return;
  if (!begun_) {
    if (!early_failure_) early_failure_ = failure;
    return;
  }
  if (WaitsForCheckpoint(failure)) return;
  // The checkpoint cannot be saved either: the first failure counts.
  Judge(after_saving_ ? *after_saving_ : failure);
}

bool SupervisorState::WaitsForCheckpoint(const Failure& failure) {
  const bool of_strand = failure.actor == "compute" ||
                         failure.actor == "comm" || failure.actor == "loader";
  if (!of_strand || failure.process >= 0) return false;
  if (after_saving_) return true;  // a peer that fails for the same reason
  if (doing_ != Doing::kEvaluating || !saving_.active() ||
      !saving_.HasSnapshots()) {
    return false;
  }
  after_saving_ = failure;
  doing_ = Doing::kSaving;
  return true;
}

void SupervisorState::Judge(const Failure& failure) {
  // An incomplete crew has no ranks that wait for each other.
  if (!CrewIsComplete() || !HeldVerdict::IsFor(failure)) {
    End(StatusOf(failure));
    return;
  }
  doing_ = Doing::kFailing;
  verdict_.emplace(failure, static_cast<int>(crew_->ranks.size()),
                   process_->roster.get(), self_->clock().now());
  OnAsk();
}

void SupervisorState::OnAsk() {
  EndIfRipe();
  if (doing_ != Doing::kFailing) return;
  for (int rank : verdict_->ToAsk()) {
    self_->send(crew_->ranks[rank], AskWaits{process_->generation});
  }
  self_->delayed_send(self_, HeldVerdict::kAskEvery, ask_atom::value);
}

void SupervisorState::OnRankWaits(const RankWaits& answer) {
  if (answer.generation != process_->generation) return;
  if (doing_ != Doing::kFailing) return;
  verdict_->Add(answer);
  EndIfRipe();
}

void SupervisorState::EndIfRipe() {
  if (doing_ != Doing::kFailing) return;
  if (verdict_->ripe(self_->clock().now())) End(verdict_->ToStatus());
}

void SupervisorState::OnException(const absl::Status& status) {
  if (doing_ == Doing::kEnded) {
    // End() itself has thrown, so the reporter may not set the outcome.
    process_->outcome.Set(status);
  } else {
    doing_ = Doing::kSteps;  // a held failure is no longer waited for
    Fail(/*rank=*/-1, "supervisor", status);
  }
}

void SupervisorState::End(absl::StatusOr<JobResult> result) {
  if (doing_ == Doing::kEnded) return;
  doing_ = Doing::kEnded;
  EndRank end;
  end.generation = process_->generation;
  end.code = result.status().raw_code();
  end.message = std::string(result.status().message());
  // Actors of other processes are null if the crew never was complete.
  for (const RankActor& rank : crew_->ranks) {
    if (rank != nullptr) self_->send(rank, end);
  }
  for (const CheckpointerActor& each : crew_->checkpointers) {
    if (each != nullptr) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    }
  }
  // The reporter sets the outcome once it has delivered all reports.
  self_->send(crew_->reporter,
              FinishReports{reports_.Take(), std::move(result)});
  *crew_ = Crew();
  self_->quit();
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
