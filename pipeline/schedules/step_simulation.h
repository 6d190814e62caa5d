// Discrete-event simulation of a step: its duration, and the activations that
// each rank holds, for given tables and times of stages. No actors or tensors.
//
//   StepCosts costs;
//   costs.stages.assign(4, {/*forward=*/1, /*inputs=*/1, /*weights=*/1});
//   const Placement placement = LoopedPlacement(/*pp=*/4, /*chunks=*/1);
//   TROUPE_ASSIGN_OR_RETURN(
//       const SimulatedStep step,
//       SimulateStep(tables, placement, costs, Dispatch::kArrival));
//   step.seconds, step.bubble;                      // 33, 0.27
//   step.ranks[0].activations_max;                  // 4
//   for (const SimulatedAction& action : step.critical_path) Print(action);
//
// A rank runs one compute action at a time, for the time of its stage. A
// message takes the transfer time between ranks, and none within a rank. A
// rank's reductions over replicas, and gathers of values (AG, GV), follow each
// other beside its compute actions, each for the time of its bucket; the
// buckets of a stage are ready one after the other during its last backward. An
// action waits for its GVs in its course (read_parts.h).
// Collectives of layers make their actions longer (StageCosts::forward_sums).
// Updates and other collectives take no time. The duration ends with the last
// compute action. Tables may have any actions, or compute actions alone: then
// transfers are added.
//
// Cost: an event for each action. 64 ranks with 512 micro-batches and two
// chunks take about half a second.

#ifndef PIPELINE_SCHEDULES_STEP_SIMULATION_H_
#define PIPELINE_SCHEDULES_STEP_SIMULATION_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/schedules/step_costs.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct SimulatedAction {
  int rank = 0;  // coordinate along pp
  Action action;
  double begin = 0, end = 0;
};

struct SimulatedRank {
  std::vector<SimulatedAction> actions;  // compute actions, in order of time
  double busy = 0;  // time, without waits for collectives of layers
  // Time at which its last reduction or gather has ended; 0: none.
  double reduced = 0;
  int activations_max = 0;
  double memory_max = 0;  // largest memory of activations
};

struct SimulatedStep {
  double seconds = 0;  // until the last rank has computed all
  double bubble = 0;   // idle part of the ranks' time, from 0 to 1
  std::vector<SimulatedRank> ranks;
  // Actions from one that waits for nothing to the last one: each begins when
  // the one before it ends, or when its message arrives.
  std::vector<SimulatedAction> critical_path;

  // Largest values over the ranks.
  int activations_max() const {
    int most = 0;
    for (const SimulatedRank& r : ranks) {
      most = std::max(most, r.activations_max);
    }
    return most;
  }
  double memory_max() const {
    double most = 0;
    for (const SimulatedRank& r : ranks) most = std::max(most, r.memory_max);
    return most;
  }
};

// `begins`: times at which the ranks are free for the step; 0 for ranks that it
// leaves out.
//   kInvalidArgument: the numbers of tables and costs are not those of the
//   placement's ranks and stages, a time is negative, or the tables deadlock:
//   names the actions that never run.
absl::StatusOr<SimulatedStep> SimulateStep(const std::vector<StepTable>& tables,
                                           const Placement& placement,
                                           const StepCosts& costs,
                                           Dispatch dispatch,
                                           std::vector<double> begins = {});

// Draws the step with a line for each rank, time to the right: "FFFF....BIWW",
// with numbers of micro-batches where they fit. `columns`: width of the text.
std::string DrawStep(const SimulatedStep& step, int columns);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_STEP_SIMULATION_H_
