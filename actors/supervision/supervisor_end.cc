// The part of the supervisor that watches for silence, collects failures and
// ends the job (supervisor.h).

#include <algorithm>
#include <utility>

#include "actors/caf/status_error.h"
#include "actors/protocol/strand_guard.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {

void SupervisorState::Watch() {
  TimePoint deadline = watchdog_.deadline();
  if (doing_ == Doing::kFailing) {
    deadline = saving_.watchdog().deadline();  // the ranks may be silent
  } else if (saving_.IsWorking()) {
    deadline = std::min(deadline, saving_.watchdog().deadline());
  }
  const auto left = deadline - self_->clock().now();
  self_->delayed_send(self_, std::max(left, TimePoint::duration(1)),
                      watch_atom::value);
}

void SupervisorState::OnWatch() {
  if (doing_ == Doing::kEnded) return;
  // A failure that is held has a time limit of its own.
  if (doing_ == Doing::kFailing && !saving_.CanFinish()) return;
  const TimePoint now = self_->clock().now();
  // Ranks that wait for the observer or for a checkpoint are not silent.
  if (reports_->full() ||
      (doing_ == Doing::kSaving && saving_.HasSnapshots())) {
    watchdog_.Kick(now);
  }
  if (saving_.IsWorking() && saving_.watchdog().IsExpired(now)) {
    Fail(-1, "checkpointer", saving_.watchdog().Error(saving_.ToString()));
  } else if (doing_ != Doing::kFailing && watchdog_.IsExpired(now)) {
    Fail(-1, "supervisor", watchdog_.Error(grants_->ToString()));
  } else {
    Watch();
  }
}

void SupervisorState::OnDown(const caf::down_msg& down) {
  // A process is lost, or has left. The coordinator reports which, and why; a
  // failure from here would come sooner, but with less information.
  if (!process_->links.is_only() &&
      (!down.reason || down.reason == caf::exit_reason::user_shutdown ||
       down.reason == caf::exit_reason::remote_link_unreachable)) {
    return;
  }
  absl::Status status = FromError(self_->system(), down.reason);
  if (status.ok()) status = absl::InternalError("ended before the job");
  const Crew::Member member = crew_->MemberAt(down.source);
  Fail(member.rank, member.actor, status);
}

void SupervisorState::Fail(int rank, const std::string& actor,
                           const absl::Status& status) {
  OnFailure(MakeFailure(process_->generation, rank, actor, status));
}

void SupervisorState::OnFailure(const Failure& failure) {
  if (failure.generation != process_->generation) return;
  if (doing_ == Doing::kEnded) return;
  if (doing_ == Doing::kStarting) {
    diagnosis_.Keep(failure);
    return;
  }
  saving_.OnFailure(failure);
  if (doing_ != Doing::kFailing) {
    doing_ = Doing::kFailing;
    // A failing evaluation stays due. The checkpoint of its step is good.
    saving_.SetEvaluations(Committed(), due_->StateAt(Committed()));
    diagnosis_.Begin(failure);
  } else {
    diagnosis_.Add(failure);
  }
  EndIfRipe();
}

void SupervisorState::OnAsk() {
  if (doing_ != Doing::kFailing) return;
  diagnosis_.OnAsk();
  EndIfRipe();
}

void SupervisorState::OnRankWaits(const RankWaits& answer) {
  if (answer.generation != process_->generation) return;
  if (doing_ != Doing::kFailing) return;
  diagnosis_.Add(answer);
  EndIfRipe();
}

void SupervisorState::EndIfRipe() {
  if (doing_ != Doing::kFailing) return;
  if (!diagnosis_.Settle()) return;
  if (!saving_.CanFinish()) End(diagnosis_.decision());
}

void SupervisorState::OnException(const absl::Status& status) {
  if (doing_ == Doing::kEnded) {
    // End() itself has thrown, so the reporter may not set the outcome.
    process_->outcome.Set(status);
  } else {
    // Neither a held failure nor a checkpoint is waited for.
    saving_.GiveUp();
    diagnosis_.Reset();
    if (doing_ == Doing::kFailing) doing_ = Doing::kSteps;
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
  crew_->EndRanks(self_, end);
  // The reporter sets the outcome once it has delivered all reports.
  self_->send(crew_->reporter,
              FinishReports{reports_->TakeRest(), std::move(result)});
  *crew_ = Crew();
  self_->quit();
}

}  // namespace troupe::actors
