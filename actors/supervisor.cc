#include "actors/supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/status_error.h"
#include "actors/strand_guard.h"
#include "base/exception_text.h"

namespace troupe::actors {
namespace {

// A window of granted steps lasts about so long: a stop takes no longer.
constexpr double kWindowSeconds = 0.03;
// Limit on the steps of a window, however short they are.
constexpr std::int64_t kWindowStepsMax = 1024;

std::chrono::nanoseconds Nanoseconds(absl::Duration duration) {
  return std::chrono::nanoseconds(absl::ToInt64Nanoseconds(duration));
}

// The next multiple of `every` above `step`; `limit` when every is 0.
std::int64_t NextMultiple(std::int64_t step, std::int64_t every,
                          std::int64_t limit) {
  return every <= 0 ? limit : std::min(limit, (step / every + 1) * every);
}

}  // namespace

void SupervisorState::Init(Self self, ProcessContextPtr process, CrewPtr crew) {
  self_ = self;
  process_ = std::move(process);
  crew_ = std::move(crew);
  start_ = self->clock().now();
  window_max_ = kWindowStepsMax;
  if (process_->hooks != nullptr && process_->hooks->window_max > 0) {
    window_max_ = process_->hooks->window_max;
  }
  done_.assign(process_->plan->mesh.size(), process_->span->first_step);
  granted_ = window_step_ = process_->span->first_step;
  // What a resumed job starts from is saved already.
  if (process_->checkpoint) snapshot_at_ = process_->span->first_step;
}

double SupervisorState::Seconds() const {
  return std::chrono::duration<double>(self_->clock().now() - start_).count();
}

std::int64_t SupervisorState::Committed() const {
  return *std::min_element(done_.begin(), done_.end());
}

void SupervisorState::OnBegin() {
  begun_ = true;
  if (early_failure_) {
    Fail(*early_failure_);
    return;
  }
  for (const Crew::Member& member : crew_->members) {
    self_->monitor(caf::actor_cast<caf::actor_addr>(member.actor));
  }
  self_->delayed_send(self_, Nanoseconds(process_->spec->timeout),
                      watch_atom::value);
  boundary_ = NextBoundary();
  halted_ || Committed() == boundary_ ? AtBoundary() : GrantSteps();
}

std::int64_t SupervisorState::NextBoundary() const {
  const JobSpec& spec = *process_->spec;
  const std::int64_t step = Committed();
  std::int64_t next = std::max(step, process_->span->steps);
  if (spec.test) {
    next = NextMultiple(step, spec.eval_every, next);
    if (spec.eval_each_epoch) {
      next = std::min(next, process_->span->EpochEndAfter(step));
    }
  }
  if (!spec.checkpoint.dir.empty()) {
    next = NextMultiple(step, spec.checkpoint.every, next);
  }
  return next;
}

void SupervisorState::GrantSteps() {
  if (halted_ || doing_ != Doing::kSteps) return;
  // Two windows ahead of the slowest rank, so that none runs dry.
  const std::int64_t until = std::min(boundary_, Committed() + 2 * window_);
  if (until < granted_ + window_ && until != boundary_) return;
  if (until == granted_) return;
  granted_ = until;
  for (const RankActor& rank : crew_->ranks) {
    self_->send(rank, Grant{process_->generation, until});
  }
}

void SupervisorState::OnProgress(const Progress& progress) {
  if (progress.generation != process_->generation || doing_ == Doing::kEnded) {
    return;
  }
  ++progress_marks_;
  done_[progress.rank] =
      progress.first + static_cast<std::int64_t>(progress.losses.size());
  // Losses are summed over all ranks: those of rank 0 stand for all.
  if (progress.rank == 0) ReportSteps(progress);
  const std::int64_t committed = Committed();
  const double seconds = Seconds();
  if (committed > window_step_) {
    const double pace =
        (seconds - window_seconds_) / double(committed - window_step_);
    const double fits = pace > 0 ? kWindowSeconds / pace : 1e9;
    window_ =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fits, 1e9)),
                                 1, std::min(2 * window_, window_max_));
    window_step_ = committed;
    window_seconds_ = seconds;
  }
  if (doing_ != Doing::kSteps) return;
  if (committed == (halted_ ? granted_ : boundary_)) {
    AtBoundary();
  } else {
    GrantSteps();
  }
}

void SupervisorState::ReportSteps(const Progress& progress) {
  std::vector<StepReport> reports;
  reports.reserve(progress.losses.size());
  for (const LossBits& loss : progress.losses) {
    StepReport report;
    report.step =
        progress.first + static_cast<std::int64_t>(reports.size()) + 1;
    report.loss = loss.mean();
    report.accuracy = loss.accuracy();
    report.skipped = loss.skipped != 0;
    report.samples = process_->plan->global_batch_size;
    report.seconds = Seconds();
    reports.push_back(report);
  }
  if (reports.empty()) return;
  result_.loss = reports.back().loss;
  if (process_->observer) process_->observer->OnSteps(reports);
}

bool SupervisorState::AtEnd() const {
  return halted_ || Committed() >= process_->span->steps;
}

bool SupervisorState::EvaluationDue() const {
  const JobSpec& spec = *process_->spec;
  const std::int64_t step = Committed();
  if (spec.test == nullptr || evaluated_at_ == step || halted_) return false;
  if (AtEnd()) return true;
  if (step == process_->span->first_step) return false;
  return (spec.eval_every > 0 && step % spec.eval_every == 0) ||
         (spec.eval_each_epoch &&
          process_->span->EpochEndAfter(step - 1) == step);
}

bool SupervisorState::CheckpointDue() const {
  const CheckpointOptions& options = process_->spec->checkpoint;
  const std::int64_t step = Committed();
  if (options.dir.empty() || snapshot_at_ == step) return false;
  return AtEnd() || (options.every > 0 && step % options.every == 0);
}

void SupervisorState::AtBoundary() {
  doing_ = Doing::kSteps;
  if (CheckpointDue()) {
    doing_ = Doing::kSaving;
    if (!writing_) Save();  // else when the one before is written
  } else if (EvaluationDue()) {
    Evaluate();
  } else if (AtEnd() && writing_) {
    doing_ = Doing::kSaving;
  } else if (AtEnd()) {
    result_.steps = Committed();
    result_.stopped = Committed() < process_->span->steps;
    result_.seconds = Seconds();
    End(result_);
  } else {
    boundary_ = NextBoundary();
    // What was done here counts to no step's pace.
    window_seconds_ = Seconds();
    GrantSteps();
  }
}

void SupervisorState::Evaluate() {
  doing_ = Doing::kEvaluating;
  evaluations_.clear();
  for (const RankActor& rank : crew_->ranks) {
    self_->send(rank, evaluate_atom::value, Committed());
  }
}

void SupervisorState::OnEvaluated(const Evaluated& evaluated) {
  if (evaluated.generation != process_->generation ||
      doing_ != Doing::kEvaluating) {
    return;
  }
  ++progress_marks_;
  evaluations_.push_back(evaluated);
  if (evaluations_.size() < crew_->ranks.size()) return;
  // Sums in rank order, whoever was first.
  std::sort(
      evaluations_.begin(), evaluations_.end(),
      [](const Evaluated& a, const Evaluated& b) { return a.rank < b.rank; });
  double sum = 0, count = 0, correct = 0;
  for (const Evaluated& part : evaluations_) {
    sum += FromBits(part.loss.sum);
    count += FromBits(part.loss.count);
    correct += FromBits(part.loss.correct);
  }
  EvaluationReport report;
  report.step = evaluated.step;
  report.loss = sum / count;
  report.accuracy = correct / count;
  report.count = static_cast<std::int64_t>(count);
  result_.evaluation = report;
  evaluated_at_ = report.step;
  if (process_->observer) process_->observer->OnEvaluation(report);
  AtBoundary();
}

void SupervisorState::Save() {
  const pipeline::Mesh& mesh = process_->plan->mesh;
  save_.step = Committed();
  save_.stages.assign(mesh.pp(), nullptr);
  snapshots_left_ = save_.stages.size();
  for (int stage = 0; stage < mesh.pp(); ++stage) {
    const int rank = mesh.RankOf({/*dp=*/0, stage});
    self_
        ->request(crew_->ranks[rank], Nanoseconds(process_->spec->timeout),
                  snapshot_atom::value, save_.step)
        .then([this, stage](
                  const SnapshotPtr& snapshot) { OnSnapshot(stage, snapshot); },
              [this, rank](const caf::error& error) {
                Fail(MakeFailure(rank, "rank",
                                 FromError(self_->system(), error)));
              });
  }
}

void SupervisorState::OnSnapshot(std::size_t stage,
                                 const SnapshotPtr& snapshot) {
  ++progress_marks_;
  if (doing_ == Doing::kEnded) return;
  save_.stages[stage] = snapshot;
  if (--snapshots_left_ > 0) return;
  snapshot_at_ = save_.step;
  writing_ = true;
  self_
      ->request(crew_->checkpointer, Nanoseconds(process_->spec->timeout),
                std::move(save_))
      .then([this](const Saved& saved) { OnSaved(saved); },
            [this](const caf::error& error) {
              Fail(MakeFailure(-1, "checkpointer",
                               FromError(self_->system(), error)));
            });
  save_ = SaveRequest{};
  AtBoundary();  // training goes on while the disk is busy
}

void SupervisorState::OnSaved(const Saved& saved) {
  ++progress_marks_;
  if (doing_ == Doing::kEnded) return;
  writing_ = false;
  result_.checkpoint = saved.path;
  if (process_->observer) {
    process_->observer->OnCheckpoint(saved.step, saved.path);
  }
  if (doing_ == Doing::kSaving) AtBoundary();
}

void SupervisorState::OnHalt() {
  if (halted_ || doing_ == Doing::kEnded) return;
  halted_ = true;
  if (!begun_) return;
  // Every rank finishes what was granted; OnProgress then ends the job.
  if (doing_ == Doing::kSteps && Committed() == granted_) AtBoundary();
}

void SupervisorState::OnWatch() {
  if (doing_ == Doing::kEnded) return;
  if (watched_marks_ == progress_marks_) {
    std::string where;
    for (std::size_t rank = 0; rank < done_.size(); ++rank) {
      absl::StrAppend(&where, rank ? ", " : "", "rank ", rank, " has done ",
                      done_[rank]);
    }
    Fail(MakeFailure(
        -1, "supervisor",
        absl::DeadlineExceededError(absl::StrCat(
            "no progress for ", absl::FormatDuration(process_->spec->timeout),
            " (", where, " of ", granted_, " granted steps)"))));
    return;
  }
  watched_marks_ = progress_marks_;
  self_->delayed_send(self_, Nanoseconds(process_->spec->timeout),
                      watch_atom::value);
}

void SupervisorState::OnDown(const caf::actor_addr& source,
                             const caf::error& reason) {
  for (const Crew::Member& member : crew_->members) {
    if (caf::actor_cast<caf::actor_addr>(member.actor) != source) continue;
    Fail(MakeFailure(member.rank, member.name,
                     FromError(self_->system(), reason)));
    return;
  }
}

void SupervisorState::OnFailure(const Failure& failure) { Fail(failure); }

void SupervisorState::Fail(const Failure& failure) {
  if (!begun_) {
    if (!early_failure_) early_failure_ = failure;
    return;
  }
  const auto code = static_cast<absl::StatusCode>(failure.code);
  const std::string who = failure.rank < 0 ? failure.actor
                                           : absl::StrCat("rank ", failure.rank,
                                                          ", ", failure.actor);
  End(absl::Status(code, absl::StrCat(who, ": ", failure.message)));
}

void SupervisorState::End(absl::StatusOr<JobResult> result) {
  if (doing_ == Doing::kEnded) return;
  doing_ = Doing::kEnded;
  if (!result.ok()) process_->AbortGroups(result.status());
  for (const Crew::Member& member : crew_->members) {
    self_->demonitor(caf::actor_cast<caf::actor_addr>(member.actor));
    caf::anon_send_exit(member.actor, caf::exit_reason::user_shutdown);
  }
  process_->outcome.Set(std::move(result));
  crew_->ranks.clear();
  crew_->members.clear();
  crew_->checkpointer = nullptr;
  self_->quit();
}

SupervisorActor::behavior_type SupervisorBehavior(SupervisorState::Self self,
                                                  ProcessContextPtr process,
                                                  CrewPtr crew) {
  self->state.Init(self, std::move(process), std::move(crew));
  self->set_down_handler([=](caf::down_msg& down) {
    self->state.OnDown(down.source, down.reason);
  });
  // An observer that throws is a failure of the job, too.
  self->set_exception_handler(
      [=](caf::scheduled_actor*, std::exception_ptr& exception) -> caf::error {
        const absl::Status status =
            absl::InternalError(base::ExceptionText(exception));
        self->state.OnFailure(MakeFailure(-1, "supervisor", status));
        return ToError(status);
      });
  return {
      [=](begin_atom) { self->state.OnBegin(); },
      [=](const Progress& progress) { self->state.OnProgress(progress); },
      [=](const Evaluated& evaluated) { self->state.OnEvaluated(evaluated); },
      [=](const Failure& failure) { self->state.OnFailure(failure); },
      [=](halt_atom) { self->state.OnHalt(); },
      [=](watch_atom) { self->state.OnWatch(); },
  };
}

}  // namespace troupe::actors
