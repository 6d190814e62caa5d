#include "actors/supervision/held_verdict.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace troupe::actors {

absl::Status StatusOf(const Failure& failure) {
  std::string who;  // stays empty if the message says it
  if (failure.rank >= 0) {
    who = absl::StrCat("rank ", failure.rank, ", ", failure.actor, ": ");
  } else if (!failure.actor.empty()) {
    who = absl::StrCat(failure.actor, ": ");
  }
  return absl::Status(static_cast<absl::StatusCode>(failure.code),
                      absl::StrCat(who, failure.message));
}

namespace {

// Whether a rank's collective was given up, since another rank has ended. That
// rank has sent its failure before; see RankState::Fail().
bool IsOfAnother(const Failure& failure) {
  const auto code = static_cast<absl::StatusCode>(failure.code);
  return code == absl::StatusCode::kCancelled &&
         (failure.actor == "compute" || failure.actor == "comm");
}

}  // namespace

bool HeldVerdict::IsFor(const Failure& failure) {
  if (failure.process >= 0 || IsOfAnother(failure)) return true;
  const auto code = static_cast<absl::StatusCode>(failure.code);
  if (code != absl::StatusCode::kUnavailable &&
      code != absl::StatusCode::kDeadlineExceeded) {
    return false;
  }
  // The other actors wait for disks and observers, not for ranks.
  return failure.actor.empty() || failure.actor == "compute" ||
         failure.actor == "comm" || failure.actor == "supervisor";
}

HeldVerdict::HeldVerdict(const Failure& failure, int ranks,
                         const Roster* roster, TimePoint now)
    : failure_(failure), roster_(roster), since_(now), graph_(ranks, roster) {
  NoteLost(failure.process);
}

void HeldVerdict::Add(const Failure& failure) {
  if (IsOfAnother(failure_) && !IsOfAnother(failure)) failure_ = failure;
  if (failure.process < 0) return;
  NoteLost(failure.process);
  // If the first failure is a rank's, which saw its group fail, and it names
  // this process, then `failure` is the direct report of the same loss and
  // replaces it. A process that it does not name may have left because of it.
  if (failure_.rank >= 0 && Names(failure_, failure.process)) {
    failure_ = failure;
  }
}

bool HeldVerdict::ripe(TimePoint now) const {
  if (!IsFor(failure_)) return true;
  if (IsOfAnother(failure_)) return now - since_ >= kCauseMax;
  return now - since_ >= kHeldMax || graph_.Unsettled().empty();
}

bool HeldVerdict::Names(const Failure& failure, int process) const {
  return roster_ != nullptr && process < roster_->processes() &&
         absl::StrContains(failure.message, roster_->Describe(process));
}

void HeldVerdict::NoteLost(int process) {
  if (roster_ == nullptr || process < 0 || process >= roster_->processes()) {
    return;
  }
  const int end = roster_->FirstRankOf(process + 1);
  for (int rank = roster_->FirstRankOf(process); rank < end; ++rank) {
    graph_.SetLost(rank);
  }
}

absl::Status HeldVerdict::ToStatus() const {
  const absl::Status why = StatusOf(failure_);
  if (!IsFor(failure_)) return why;
  return absl::Status(why.code(),
                      absl::StrCat(why.message(), "\n", graph_.ToString()));
}

}  // namespace troupe::actors
