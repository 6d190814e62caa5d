// The part of the supervisor that handles failures.

#include <string>

#include "actors/caf/status_error.h"
#include "actors/protocol/strand_guard.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {

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

}  // namespace troupe::actors
