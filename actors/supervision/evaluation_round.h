// The progress of one evaluation: collects the ranks' parts until it has all of
// them, and adds them up. Plain data, without actors.
//
//   EvaluationRound round;
//   round.Begin(/*step=*/100, /*ranks=*/2);
//   round.Add(part_of_1);                 // Evaluated; true: it counts
//   round.Add(part_of_0);
//   if (round.complete()) {
//     EvaluationReport report = round.End(spec->loss_reduction);
//   }
//
// The parts are summed in rank order, so that the result has the same bits
// whatever order they arrive in. A part of another step, and a second part of a
// rank, do not count.
//
// Threads: one at a time.

#ifndef ACTORS_SUPERVISION_EVALUATION_ROUND_H_
#define ACTORS_SUPERVISION_EVALUATION_ROUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

class EvaluationRound {
 public:
  // Starts an evaluation of `ranks` ranks after `step` steps.
  void Begin(std::int64_t step, int ranks);
  // Adds the part of one of the ranks. Returns whether it counts.
  bool Add(const Evaluated& part);
  // Whether an evaluation is in progress and all of its parts have arrived.
  bool complete() const;
  // Ends the evaluation, which must be complete. Returns the result for the
  // whole test set.
  EvaluationReport End(nn::ops::LossReduction reduction);

 private:
  std::int64_t step_ = 0;
  // Parts that have arrived, by rank. Empty if no evaluation is in progress.
  std::vector<std::optional<Evaluated>> parts_;
  int missing_ = 0;  // number of parts that have not arrived
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_EVALUATION_ROUND_H_
