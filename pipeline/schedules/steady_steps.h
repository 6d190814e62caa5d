// Simulates equal steps that follow each other without a pause, and measures
// one of them. A rank begins a step as soon as it has computed and updated in
// the one before, without waiting for other ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const SteadyStep steady,
//       SimulateSteps(tables, placement, costs, Dispatch::kArrival));
//   steady.seconds;                     // from the end of one to the next's
//   DrawStep(steady.step, /*columns=*/80);
//
// A rank that ends its part early begins the next step early, so a step may
// take less time than alone (step_simulation.h). It begins when the reductions
// of its buckets have ended, too, and the last of them is applied. If
// optimizers need all gradients first (NR), updates wait for the last rank.

#ifndef PIPELINE_SCHEDULES_STEADY_STEPS_H_
#define PIPELINE_SCHEDULES_STEADY_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct SteadyStep {
  double seconds = 0;
  double bubble = 0;   // idle part of the ranks' time, from 0 to 1
  SimulatedStep step;  // one step, from when the first rank is free for it
};

// Errors: those of SimulateStep().
absl::StatusOr<SteadyStep> SimulateSteps(const std::vector<StepTable>& tables,
                                         const Placement& placement,
                                         const StepCosts& costs,
                                         Dispatch dispatch);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_STEADY_STEPS_H_
