// Finds what a simulated step's duration is made of (step_simulation.h).
//
//   const std::vector<SimulatedAction> path = CriticalPath(step, placement);
//   for (const SimulatedAction& action : path) Print(action);

#ifndef PIPELINE_SCHEDULES_CRITICAL_PATH_H_
#define PIPELINE_SCHEDULES_CRITICAL_PATH_H_

#include <vector>

#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"

namespace troupe::pipeline {

// Returns the compute actions from one that waits for nothing to the one that
// ends last: each begins when the one before it ends, or when its message
// arrives. `step` has the actions of its ranks.
std::vector<SimulatedAction> CriticalPath(const SimulatedStep& step,
                                          const Placement& placement);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_CRITICAL_PATH_H_
