// A verdict of somebody who is lost, silent or late, held for a moment: until
// the ranks have said what they wait for, so that it can name what everybody
// waited for, and for whom.
//
//   if (HeldVerdict::IsFor(failure)) {
//     HeldVerdict verdict(failure, /*ranks=*/4, roster, now);
//     for (int rank : verdict.ToAsk()) Ask(rank);     // AskWaits
//     verdict.Add(answer);                            // RankWaits
//     if (verdict.ripe(now)) return End(verdict.ToStatus());
//   }
//
// The first failure is the job's. Further ones that come meanwhile are taken as
// witnesses of the same event: of who is lost, and how.
//
// Threads: one at a time. Times are of the caller's clock.

#ifndef ACTORS_SUPERVISION_HELD_VERDICT_H_
#define ACTORS_SUPERVISION_HELD_VERDICT_H_

#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/roster.h"
#include "actors/supervision/wait_graph.h"

namespace troupe::actors {

// "rank 1, loader: images.idx: offset 16: truncated"
absl::Status StatusOf(const Failure& failure);

class HeldVerdict {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Limit on the time that a verdict is held, and between two questions: a rank
  // that computes may come to wait meanwhile.
  static constexpr std::chrono::milliseconds kHeldMax{150};
  static constexpr std::chrono::milliseconds kAskEvery{25};

  // Whether ranks that wait could tell more about it.
  static bool IsFor(const Failure& failure);

  // `roster`: null where all ranks live here; else it outlives the verdict.
  HeldVerdict(const Failure& failure, int ranks, const Roster* roster,
              TimePoint now);

  // Who cannot be asked, and is not to blame for that.
  void LeaveOut(int rank) { graph_.LeaveOut(rank); }

  void Add(const Failure& failure);
  void Add(const RankWaits& answer) { graph_.Add(answer); }

  std::vector<int> ToAsk() const { return graph_.Unsettled(); }
  // All have told what there is to tell, or it was held for long enough.
  bool ripe(TimePoint now) const {
    return now - since_ >= kHeldMax || graph_.Unsettled().empty();
  }
  // The failure, then a wait graph's lines.
  absl::Status ToStatus() const;

 private:
  bool Names(const Failure& failure, int process) const;
  void NoteLost(int process);

  Failure failure_;
  const Roster* const roster_;
  const TimePoint since_;
  WaitGraph graph_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_HELD_VERDICT_H_
