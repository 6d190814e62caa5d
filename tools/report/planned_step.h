// The step that a plan asks for, simulated, on the time scale of the recorded
// ones.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<PlannedStep> planned,
//                           PlanSteps(plan, facts.costs, trace, shape));
//   planned[0].simulated.seconds;              // microseconds here
//
// Two sets of costs, each where there is one:
// - as measured: the median time of each stage's forwards, backwards or their
// halves in the trace. What it lacks of the recorded step is the order, the
// messages and the jitter;
// - by arithmetic: what the plan was made with, scaled so that the computation
// of a step takes as long as the measured costs say.
//
// Messages take no time in either. Linear in actions and bars, with a sort.

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

// `estimate`: by arithmetic; without stages where there is none.
//   kInvalidArgument: the estimate is of another number of stages.
absl::StatusOr<std::vector<PlannedStep>> PlanSteps(
    const pipeline::Plan& plan, const pipeline::StepCosts& estimate,
    const RunTrace& trace, const RunShape& shape);

// Median times of a stage's actions, in microseconds, without what ran in the
// middle of them; a whole backward is half inputs, half weights. Without stages
// where some stage has no times.
pipeline::StepCosts MeasuredCosts(const RunTrace& trace, const RunShape& shape);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_PLANNED_STEP_H_
