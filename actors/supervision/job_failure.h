// The failure of a job, from its first report to the decision how the job ends.
// A failure that comes before the crew is complete is kept until then. One that
// the ranks' waits may explain is held (held_verdict.h); any other one decides
// at once. Plain data, without actors.
//
//   JobFailure failure;
//   failure.Keep(report);                     // Failure, before the crew began
//   if (HeldVerdict::IsFor(report)) {
//     failure.Hold(report, /*ranks=*/4, roster, now);
//   } else {
//     failure.Decide(report);
//   }
//   for (int rank : failure.ToAsk()) Ask(rank);      // AskWaits
//   failure.Add(answer);                             // RankWaits
//   if (failure.Settle(now)) return End(failure.decision());
//
// Threads: one at a time. All times are from the caller's clock.

#ifndef ACTORS_SUPERVISION_JOB_FAILURE_H_
#define ACTORS_SUPERVISION_JOB_FAILURE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/roster.h"
#include "actors/supervision/held_verdict.h"

namespace troupe::actors {

class JobFailure {
 public:
  using TimePoint = HeldVerdict::TimePoint;

  // Keeps the failure, unless another one is kept already.
  void Keep(const Failure& failure) {
    if (!kept_) kept_ = failure;
  }
  const std::optional<Failure>& kept() const { return kept_; }

  // Makes the failure the decision.
  void Decide(const Failure& failure) { decision_ = StatusOf(failure); }
  // Holds the failure: the parameters are those of HeldVerdict.
  void Hold(const Failure& failure, int ranks, const Roster* roster,
            TimePoint now) {
    verdict_.emplace(failure, ranks, roster, now);
  }
  // Forgets the decision and what is held, for a failure that replaces them.
  void Reset() {
    verdict_.reset();
    decision_.reset();
  }

  // Adds a later failure, or a rank's answer, to the one that is held. Has no
  // effect if none is.
  template <typename Message>
  void Add(const Message& message) {
    if (verdict_) verdict_->Add(message);
  }
  // Returns the ranks to send AskWaits to; empty once the decision is made.
  std::vector<int> ToAsk() const {
    return verdict_ && !decision_ ? verdict_->ToAsk() : std::vector<int>();
  }

  // Makes the decision if the time for it has come (HeldVerdict::ripe()).
  // Returns whether it is made. A failure must be held or decided.
  bool Settle(TimePoint now) {
    if (!decision_ && verdict_->ripe(now)) decision_ = verdict_->ToStatus();
    return is_decided();
  }
  bool is_decided() const { return decision_.has_value(); }
  // Returns how the job ends. Valid once it is decided.
  const absl::Status& decision() const { return *decision_; }

 private:
  std::optional<Failure> kept_;
  std::optional<HeldVerdict> verdict_;
  std::optional<absl::Status> decision_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_JOB_FAILURE_H_
