// Costs of a step, as numbers: the input of its simulation (step_simulation.h)
// and of searches for schedules.
//
//   StepCosts costs;
//   costs.stages.assign(4, {/*forward=*/1, /*inputs=*/1, /*weights=*/1});
//   costs.stages[0].reductions = {0.5, 0.5};        // two buckets
//   costs.stages[0].forward_sums = 0.2;             // its layers, over tp
//   TROUPE_RETURN_IF_ERROR(CheckCosts(tables, placement, costs));

#ifndef PIPELINE_SCHEDULES_STEP_COSTS_H_
#define PIPELINE_SCHEDULES_STEP_COSTS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Costs of one micro-batch, in any unit of time and of memory.
struct StageCosts {
  double forward = 1;
  double inputs = 1;      // gradients of inputs
  double weights = 1;     // gradients of weights
  double activation = 1;  // memory from the forward to the backward's end
  // Time of a whole backward; below 0: inputs + weights. It may be shorter than
  // that: halves read again from memory what a whole one has in the cache.
  double backward = -1;
  double update = 0;  // time to update its parameters, once a step
  double held = 0;    // memory, all the time: parameters and the like
  // Time of the reduction of each bucket over replicas; empty: they take none.
  std::vector<double> reductions = {};
  // Time of a gather of each bucket's values (AG, GV); empty: they take none.
  std::vector<double> gathers = {};
  // Time for which a forward and a backward wait for collectives of their
  // layers, such as sums over tp. A rank does nothing else meanwhile.
  double forward_sums = 0;
  double backward_sums = 0;

  // Returns the time of an F, B, I or W without collectives of its layers.
  double TimeOf(ActionKind kind) const;
  // Returns the time of these collectives. Those of a backward belong to the
  // half that makes gradients of inputs.
  double SumsOf(ActionKind kind) const;
};

struct StepCosts {
  std::vector<StageCosts> stages;
  double transfer = 0;  // time of an activation or gradient between ranks
  // Time and memory of the last micro-batch as a part of another one's
  // (Plan::last_micro_batch_part()).
  double last_micro_batch = 1;
  // Returns a factor on an action's time, such as noise; null: 1.
  std::function<double(int stage, const Action& action)> factor;
};

//   kInvalidArgument: the numbers of tables and costs are not those of the
//   placement's ranks, stages and buckets, or a time is negative.
absl::Status CheckCosts(const std::vector<StepTable>& tables,
                        const Placement& placement, const StepCosts& costs);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_STEP_COSTS_H_
