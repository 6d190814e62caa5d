// Finds where to cut a model whose parts have been measured, so that the
// busiest rank has the least work and no rank exceeds its memory limit: an
// exact dynamic programme over all contiguous cuts, for one or several chunks a
// rank. Costs come from actors/planning/measure_costs.h.
//
//   CutOptions options;
//   options.placement = VPlacement(/*pp=*/2);
//   options.micro_batches = 8;
//   options.memory_limit = 2e9;
//   TROUPE_ASSIGN_OR_RETURN(const FoundCuts found, FindCuts(costs, options));
//   plan_options.cuts = found.cuts;
//   found.rank_seconds;                      // of a step, the busiest rank
//
// Ties are broken by the smallest largest stage, then by the stages that begin
// last.
//
// How it works: units are assigned rank by rank. The units that are left form
// one run for each chunk of a rank, and the next rank takes from the same ends:
// from the front of each run for looped placements, from both ends of one run
// for a V. So the state is one position for each chunk: n^v states for n units
// and v chunks, n^v successors of each, and n^(v-1) ways to divide a looped
// model among its chunks. A bound on the busiest rank, which grows from the
// least possible value, prunes most of them: 50 units in a V of 8 ranks take
// milliseconds.
//
// It reads no clock and starts no threads. Source, for one chunk a rank:
// Narayanan et al. 2019 (PipeDream), doi:10.1145/3341301.3359646, sec. 3.1.

#ifndef PIPELINE_CUT_SEARCH_H_
#define PIPELINE_CUT_SEARCH_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/partition.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"

namespace troupe::pipeline {

// Collectives of layers in a forward or a backward: their number, and the bytes
// of the tensors that they add up. A gather or a reduce-scatter counts half of
// the whole tensor, since it sends half as many bytes as a sum.
struct LayerSums {
  int count = 0;
  double bytes = 0;
};

// A part of the model that no cut divides. Seconds and bytes.
struct UnitCosts {
  std::string path;         // path of its module, as in cuts
  StageCosts costs;         // costs of a micro-batch; activations in bytes
  double held_bytes = 0;    // parameters, gradients, optimizer states
  double output_bytes = 0;  // bytes that a micro-batch sends to the next unit
  // Collectives over tp for a micro-batch. Their times are in `costs` if the
  // speed of the links is known.
  LayerSums forward_sums = {}, backward_sums = {};
};

// Costs of a model's units, in order; those of the last include the loss.
struct ModelCosts {
  std::vector<UnitCosts> units;
  double transfer = 0;  // seconds that an activation takes between two ranks
};

struct CutOptions {
  // Looped (LoopedPlacement), or VPlacement.
  Placement placement;
  int micro_batches = 1;  // number in a step
  // Largest number of micro-batches between forward and backward, for each
  // stage; empty: one.
  std::vector<int> under_way;
  // Limit in bytes on what a rank holds: its units' held_bytes, and their
  // activations for `under_way` micro-batches.
  double memory_limit = std::numeric_limits<double>::infinity();
};

struct FoundCuts {
  std::vector<Cut> cuts;
  double rank_seconds = 0;  // work of the busiest rank in a step
  double rank_bytes = 0;    // largest number of bytes that a rank holds
};

//   kInvalidArgument: the model has fewer units than stages, or the placement
//     is neither looped nor a V.
//   kResourceExhausted: no cuts keep the limit; says how much is missing.
absl::StatusOr<FoundCuts> FindCuts(const ModelCosts& costs,
                                   const CutOptions& options);

// Returns the largest number of micro-batches that each stage has between their
// forward and the end of their backward, for CutOptions::under_way.
std::vector<int> MostUnderWay(const std::vector<StepTable>& tables,
                              const Placement& placement);

// Returns the costs of the stages that begin at `begins` (ResolveCuts()), which
// are sums over their units.
StepCosts CostsOfStages(const ModelCosts& costs,
                        absl::Span<const std::string> begins);

}  // namespace troupe::pipeline

#endif  // PIPELINE_CUT_SEARCH_H_
