// How long a step takes among others of its kind, which follow each other
// without a pause: a rank begins one as soon as it has computed and updated in
// the one before, whatever the others do.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const SteadyStep steady,
//       SimulateSteps(tables, placement, costs, Dispatch::kArrival));
//   steady.seconds;                     // from the end of one to the next's
//   DrawStep(steady.step, /*columns=*/80);
//
// A rank that ends its part early begins the next step early, so a step may
// take less here than alone (step_simulation.h). Where optimizers look at all
// gradients first (NR), updates wait for the last rank. Reductions over
// replicas take no time.

#ifndef PIPELINE_SCHEDULES_STEADY_STEPS_H_
#define PIPELINE_SCHEDULES_STEADY_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/placement.h"
#include "pipeline/schedule.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

struct SteadyStep {
  double seconds = 0;
  double bubble = 0;   // part of that in which a rank, of all, does nothing
  SimulatedStep step;  // one of them, from when the first rank is free for it
};

// Errors of SimulateStep().
absl::StatusOr<SteadyStep> SimulateSteps(const std::vector<StepTable>& tables,
                                         const Placement& placement,
                                         const StepCosts& costs,
                                         Dispatch dispatch);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_STEADY_STEPS_H_
