// A *verdict* is the failure that ends a job. If it says that a process or rank
// is lost, silent or late, it is held for a moment, until the ranks have
// reported what they wait for: then the error message can name the wait and the
// rank that caused it. If it says that a rank's collective was given up, since
// another rank has ended, it is held until that rank's own failure arrives: a
// group that shares memory learns of the end sooner than the supervisor.
//
//   if (HeldVerdict::IsFor(failure)) {
//     HeldVerdict verdict(failure, /*ranks=*/4, roster, now);
//     for (int rank : verdict.ToAsk()) Ask(rank);     // AskWaits
//     verdict.Add(answer);                            // RankWaits
//     if (verdict.ripe(now)) return End(verdict.ToStatus());
//   }
//
// The first failure that has a cause of its own is the job's. Failures that
// arrive while it is held count as further reports of the same event, about
// which process is lost, and how.
//
// Threads: one at a time. All times are from the caller's clock.

#ifndef ACTORS_SUPERVISION_HELD_VERDICT_H_
#define ACTORS_SUPERVISION_HELD_VERDICT_H_

#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/roster.h"
#include "actors/supervision/wait_graph.h"

namespace troupe::actors {

// Returns the failure's status, with its rank and actor before the message:
// "rank 1, loader: images.idx: offset 16: truncated".
absl::Status StatusOf(const Failure& failure);

class HeldVerdict {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Limit on the time that a verdict is held, and time after which ranks are
  // asked again: a rank that computes may have begun to wait.
  static constexpr std::chrono::milliseconds kHeldMax{150};
  // The limit for a collective that was given up: the failure that explains it
  // is under way.
  static constexpr std::chrono::milliseconds kCauseMax{1000};
  static constexpr std::chrono::milliseconds kAskEvery{25};

  // Whether the failure is one that the ranks' waits, or the failure of another
  // rank, may explain.
  static bool IsFor(const Failure& failure);

  // `roster`: null if all ranks live in this process; else it must outlive the
  // verdict.
  HeldVerdict(const Failure& failure, int ranks, const Roster* roster,
              TimePoint now);

  // Excludes a rank that cannot be asked, without blaming it.
  void LeaveOut(int rank) { graph_.LeaveOut(rank); }

  void Add(const Failure& failure);
  void Add(const RankWaits& answer) { graph_.Add(answer); }

  // Returns the ranks to send AskWaits to.
  std::vector<int> ToAsk() const { return graph_.Unsettled(); }
  // Whether there is nothing left to wait for, or the limit on the time has
  // passed.
  bool ripe(TimePoint now) const;
  // Returns the failure, with the wait graph's lines after its message unless
  // it has a cause of its own.
  absl::Status ToStatus() const;

 private:
  // Whether the failure's message contains the description of `process`.
  bool Names(const Failure& failure, int process) const;
  // Marks the ranks of `process` as lost.
  void NoteLost(int process);

  Failure failure_;
  const Roster* const roster_;
  const TimePoint since_;
  WaitGraph graph_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_HELD_VERDICT_H_
