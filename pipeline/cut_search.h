// Where to cut a model whose parts have been measured, so that the rank with
// the most to do has as little as may be, and no rank holds more than it can:
// an exact dynamic programme over all contiguous cuts, several chunks a rank
// included. Costs come from actors/planning/measure_costs.h.
//
//   CutOptions options;
//   options.placement = VPlacement(/*pp=*/2);
//   options.micro_batches = 8;
//   options.memory_limit = 2e9;
//   TROUPE_ASSIGN_OR_RETURN(const FoundCuts found, FindCuts(costs, options));
//   plan_options.cuts = found.cuts;
//   found.rank_seconds;                      // of a step, the busiest rank
//
// Of cuts that are alike in that, those are taken whose largest stage is
// smallest; of those, the ones whose stages begin last.
//
// How it works: the ranks are gone through one by one. What is left of the
// model then are as many runs of units as a rank has chunks, which the next
// ranks take from the same ends: looped placements from the front of each, a V
// from both ends of one. So the state is one position for each chunk: n^v of
// them for n units and v chunks, n^v ways to go on from each, and n^(v-1) ways
// to divide a looped model among its chunks. A bound on the busiest rank, which
// grows from the least there can be, leaves few of them: 50 units in a V of 8
// ranks take milliseconds.
//
// No clock, no threads. Source: the one chunk a rank, Narayanan et al. 2019
// (PipeDream), doi:10.1145/3341301.3359646, sec. 3.1.

#ifndef PIPELINE_CUT_SEARCH_H_
#define PIPELINE_CUT_SEARCH_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/partition.h"
#include "pipeline/placement.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

// A part of the model that no cut divides. Seconds and bytes.
struct UnitCosts {
  std::string path;         // of its module, as cuts have it
  StageCosts costs;         // of a micro-batch; activations in bytes
  double held_bytes = 0;    // parameters, gradients, optimizer states
  double output_bytes = 0;  // of a micro-batch: what travels behind it
};

// In the order of the model; the last one has the loss, too.
struct ModelCosts {
  std::vector<UnitCosts> units;
  double transfer = 0;  // seconds of an activation between two ranks
};

struct CutOptions {
  // Looped (LoopedPlacement), or VPlacement.
  Placement placement;
  int micro_batches = 1;  // of a step
  // Micro-batches of a stage between forward and backward, at most, by stage;
  // empty: one.
  std::vector<int> under_way;
  // What a rank may hold: its units' held_bytes, and their activations for so
  // many micro-batches. Bytes.
  double memory_limit = std::numeric_limits<double>::infinity();
};

struct FoundCuts {
  std::vector<Cut> cuts;
  double rank_seconds = 0;  // of a step, without waiting: the busiest rank
  double rank_bytes = 0;    // what the rank holds that holds most
};

//   kInvalidArgument: there are fewer units than stages, or the placement is
//     neither looped nor a V.
//   kResourceExhausted: no cuts keep the limit; says how much is missing.
absl::StatusOr<FoundCuts> FindCuts(const ModelCosts& costs,
                                   const CutOptions& options);

// How many micro-batches of each stage are between their forward and the end of
// their backward, at most: what CutOptions::under_way takes.
std::vector<int> MostUnderWay(const std::vector<StepTable>& tables,
                              const Placement& placement);

// The costs of the stages that begin at `begins` (ResolveCuts()): sums over
// their units.
StepCosts CostsOfStages(const ModelCosts& costs,
                        absl::Span<const std::string> begins);

}  // namespace troupe::pipeline

#endif  // PIPELINE_CUT_SEARCH_H_
