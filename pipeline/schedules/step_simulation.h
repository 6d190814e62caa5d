// How long a step of given tables takes, and what a rank holds meanwhile, for
// given times of stages: without actors or tensors.
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
// Compute actions take their time, one at a time on a rank; a message takes a
// transfer's time where the other stage lies on another rank, and none
// otherwise; reductions and updates take none, so what a step ends with beside
// them is not in it. Tables may have any actions, or compute actions alone:
// then transfers are added.
//
// Cost: an event for each action. 64 ranks with 512 micro-batches, in two
// chunks, take about half a second.

#ifndef PIPELINE_SCHEDULES_STEP_SIMULATION_H_
#define PIPELINE_SCHEDULES_STEP_SIMULATION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/placement.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// What one micro-batch costs, in any unit of time and of memory.
struct StageCosts {
  double forward = 1;
  double inputs = 1;      // gradients of inputs
  double weights = 1;     // gradients of weights
  double activation = 1;  // memory from the forward to the backward's end
  // A whole backward; below 0: inputs and weights. Where it is shorter, halves
  // read again from memory what a whole one has in the cache.
  double backward = -1;
  double update = 0;  // of its parameters, once a step
  double held = 0;    // memory, all the time: parameters and the like

  // How long an F, B, I or W takes.
  double TimeOf(ActionKind kind) const;
};

struct StepCosts {
  std::vector<StageCosts> stages;
  double transfer = 0;  // of an activation or a gradient, between ranks
  // What the last micro-batch costs, in time and memory, as a part of what the
  // others do (Plan::last_micro_batch_part()).
  double last_micro_batch = 1;
  // What an action's time is multiplied by, such as noise; null: 1.
  std::function<double(int stage, const Action& action)> factor;
};

struct SimulatedAction {
  int rank = 0;  // coordinate along pp
  Action action;
  double begin = 0, end = 0;
};

struct SimulatedRank {
  std::vector<SimulatedAction> actions;  // that compute, as they ran
  double busy = 0;                       // time
  int activations_max = 0;
  double memory_max = 0;  // of activations
};

struct SimulatedStep {
  double seconds = 0;  // until the last rank has computed all
  double bubble = 0;   // part of that in which a rank, of all, does not compute
  std::vector<SimulatedRank> ranks;
  // From an action that waits for none to the last one: each begins when the
  // one before it ends, or its message comes.
  std::vector<SimulatedAction> critical_path;

  // The largest of the ranks'.
  int activations_max() const;
  double memory_max() const;
};

// `begins`: when the ranks are free for the step; those that are left out are
// at 0.
//   kInvalidArgument: tables or costs are not as many as the placement has
//   ranks or stages, a time is negative, or the tables do not fit together:
//   names what can never run.
absl::StatusOr<SimulatedStep> SimulateStep(const std::vector<StepTable>& tables,
                                           const Placement& placement,
                                           const StepCosts& costs,
                                           Dispatch dispatch,
                                           std::vector<double> begins = {});

// The ranks below each other, time to the right: "FFFF....BIWW", with numbers
// of micro-batches where they fit. `columns`: width of the whole.
std::string DrawStep(const SimulatedStep& step, int columns);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_STEP_SIMULATION_H_
