// What a rank waits for, as its context shows it from any thread: the
// collectives of its groups, by step and bucket, and the tensors of other
// stages.
//
//   const WaitReport report(*context);
//   RankWaits waits = report.Make(std::chrono::steady_clock::now());
//   waits.waits[0].part;                     // "bucket 1"
//
// Which bucket a collective is, follows from its number: the collectives of a
// group start in the order of the table (pipeline/table_cursor.h), so many in
// each step.
//
// Threads: any.

#ifndef ACTORS_STRANDS_WAIT_REPORT_H_
#define ACTORS_STRANDS_WAIT_REPORT_H_

#include <string>
#include <vector>

#include "actors/protocol/rank_waits.h"
#include "actors/setup/rank_context.h"

namespace troupe::actors {

class WaitReport {
 public:
  using TimePoint = StepPosition::TimePoint;

  // `context` outlives it.
  explicit WaitReport(const RankContext& context);

  // `doing` and `busy` speak of the compute strand; empty where it has no step
  // to run.
  RankWaits Make(TimePoint now) const;

 private:
  // A group of the rank.
  struct Seat {
    const comm::Communicator* comm = nullptr;
    std::string group;
    std::vector<int> ranks;  // global, by rank of the group
    // A step's collectives, in the order in which they start; empty: they are
    // not by the table.
    std::vector<std::string> parts;
  };

  void AddTies();
  void AddWaits(const Seat& seat, const StepPosition::Place& place,
                TimePoint now, RankWaits& report) const;
  void AddReceive(const StepPosition::Place& place, TimePoint now,
                  RankWaits& report) const;

  const RankContext& context_;
  std::vector<Seat> seats_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_WAIT_REPORT_H_
