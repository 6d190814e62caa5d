// Finds out what a rank waits for: the collectives of its groups, by step and
// bucket, and the tensors of other stages. It reads the rank's context, from
// any thread.
//
//   const WaitReport report(*context);
//   RankWaits waits = report.Make(std::chrono::steady_clock::now());
//   waits.waits[0].part;                     // "bucket 1"
//
// The bucket of a collective follows from the collective's number: those of a
// group start in the order of the table (pipeline/table/table_cursor.h), the
// same number of them in each step.
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

  // Returns the waits at time `now`. `doing` and `busy` describe the compute
  // strand, if it runs a step and waits for nothing; else they are empty.
  RankWaits Make(TimePoint now) const;

 private:
  // A group of the rank.
  struct Seat {
    const RankGroup* group = nullptr;
    // Collectives of a step, in the order in which they start; empty if the
    // table does not have them.
    std::vector<std::string> parts;
  };

  void AddWaits(const Seat& seat, const StepPosition::Place& place,
                TimePoint now, RankWaits& report) const;
  void AddReceive(const StepPosition::Place& place, TimePoint now,
                  RankWaits& report) const;

  const RankContext& context_;
  std::vector<Seat> seats_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_WAIT_REPORT_H_
