// Simulates the step of a plan, on the time scale of the recorded steps.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<PlannedStep> planned,
//                           PlanSteps(plan, facts.costs, trace, shape));
//   planned[0].simulated.seconds;              // microseconds here
//
// It is simulated with each of two sets of costs that is available:
// - as measured: the median time of each stage's forwards, and of its backwards
// or their halves, in the trace. The simulation differs from the recorded step
// in the order of actions, the time of messages and the jitter;
// - by arithmetic: the estimate that the plan was made with, scaled so that the
// computation of a step takes as long as with the measured costs.
//
// Messages take no time in either. Cost: a sort of the bars; otherwise linear
// in actions and bars.

#ifndef TOOLS_REPORT_PLANNED_STEP_H_
#define TOOLS_REPORT_PLANNED_STEP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/step_simulation.h"
#include "tools/report/run_shape.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

struct PlannedStep {
  std::string costs;                  // "as measured" or "by arithmetic"
  pipeline::SimulatedStep simulated;  // ranks: coordinates along pp
};

// `estimate`: the costs by arithmetic; without stages if there are none.
//   kInvalidArgument: the estimate has another number of stages than the plan.
absl::StatusOr<std::vector<PlannedStep>> PlanSteps(
    const pipeline::Plan& plan, const pipeline::StepCosts& estimate,
    const RunTrace& trace, const RunShape& shape);

// Returns the median time of each stage's actions, in microseconds, without
// bars that ran in the middle of them. A whole backward counts as half input
// gradients, half weight gradients. The result has no stages if the trace lacks
// the forwards or backwards of any stage.
pipeline::StepCosts MeasuredCosts(const RunTrace& trace, const RunShape& shape);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_PLANNED_STEP_H_
