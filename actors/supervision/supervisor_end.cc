// The part of the supervisor that watches for silence, collects failures and
// ends the job (supervisor.h).

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/caf/status_error.h"
#include "actors/protocol/strand_guard.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {

void SupervisorState::Watch() {
  TimePoint since = last_sign_;
  if (doing_ == Doing::kFailing) {
    since = saving_.last_sign();  // the ranks may be silent
  } else if (saving_.IsWorking()) {
    since = std::min(since, saving_.last_sign());
  }
  const auto left =
      since + ActorTimeout(process_->spec->timeout) - self_->clock().now();
  self_->delayed_send(self_, std::max(left, TimePoint::duration(1)),
                      watch_atom::value);
}

void SupervisorState::OnWatch() {
  if (doing_ == Doing::kEnded) return;
  // A failure that is held has a time limit of its own.
  if (doing_ == Doing::kFailing && !saving_.CanFinish()) return;
  const TimePoint now = self_->clock().now();
  const auto timeout = ActorTimeout(process_->spec->timeout);
  const std::string how_long = absl::FormatDuration(process_->spec->timeout);
  // Ranks that wait for the observer or for a checkpoint are not silent.
  if (reports_->full() ||
      (doing_ == Doing::kSaving && saving_.HasSnapshots())) {
    last_sign_ = now;
  }
  if (saving_.IsWorking() && now - saving_.last_sign() >= timeout) {
    Fail(-1, "checkpointer",
         absl::DeadlineExceededError(absl::StrCat(
             "no progress for ", how_long, " (", saving_.ToString(), ")")));
  } else if (doing_ != Doing::kFailing && now - last_sign_ >= timeout) {
    Fail(-1, "supervisor",
         absl::DeadlineExceededError(absl::StrCat(
             "no progress for ", how_long, " (", grants_->ToString(), ")")));
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
  if (doing_ == Doing::kEnded) return;
  if (doing_ == Doing::kStarting) {
    failure_.Keep(failure);
    return;
  }
  NoteLosses(failure);
  if (doing_ != Doing::kFailing) {
    doing_ = Doing::kFailing;
    Judge(failure);
  } else {
    failure_.Add(failure);
  }
  EndIfRipe();
}

void SupervisorState::NoteLosses(const Failure& failure) {
  if (failure.actor == "checkpointer") saving_.GiveUp();
  if (failure.actor == "rank") saving_.OnLost(failure.rank, failure.rank + 1);
  const Roster* const roster = process_->links.roster.get();
  if (roster != nullptr && failure.process >= 0 &&
      failure.process < roster->processes()) {
    saving_.OnLost(roster->FirstRankOf(failure.process),
                   roster->FirstRankOf(failure.process + 1));
  }
}

void SupervisorState::Judge(const Failure& failure) {
  // A failing evaluation stays due. The checkpoint of its step is good.
  saving_.SetEvaluations(Committed(), due_->StateAt(Committed()));
  // An incomplete crew has no ranks that wait for each other.
  if (!CrewIsComplete() || !HeldVerdict::IsFor(failure)) {
    failure_.Decide(failure);
    return;
  }
  failure_.Hold(failure, static_cast<int>(crew_->ranks.size()),
                process_->links.roster.get(), self_->clock().now());
  OnAsk();
}

void SupervisorState::OnAsk() {
  EndIfRipe();
  if (doing_ != Doing::kFailing || failure_.is_decided()) return;
  for (int rank : failure_.ToAsk()) {
    self_->send(crew_->ranks[rank], AskWaits{process_->generation});
  }
  self_->delayed_send(self_, HeldVerdict::kAskEvery, ask_atom::value);
}

void SupervisorState::OnRankWaits(const RankWaits& answer) {
  if (answer.generation != process_->generation) return;
  if (doing_ != Doing::kFailing || !failure_.was_held()) return;
  failure_.Add(answer);
  EndIfRipe();
}

void SupervisorState::EndIfRipe() {
  if (doing_ != Doing::kFailing) return;
  if (!failure_.Settle(self_->clock().now())) return;
  if (!saving_.CanFinish()) End(failure_.decision());
}

void SupervisorState::OnException(const absl::Status& status) {
  if (doing_ == Doing::kEnded) {
    // End() itself has thrown, so the reporter may not set the outcome.
    process_->outcome.Set(status);
  } else {
    // Neither a held failure nor a checkpoint is waited for.
    saving_.GiveUp();
    failure_.Reset();
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
              FinishReports{reports_->TakeRest(), std::move(result)});
  *crew_ = Crew();
  self_->quit();
}

}  // namespace troupe::actors
