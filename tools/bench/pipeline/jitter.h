// Simulates steps of a pipeline with jitter: its tables run many times, with
// noise on the time of each action.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const JitteredSteps steps,
//       SimulateJitter(prediction.plan, prediction.costs, /*jitter=*/0.2));
//   const double gain = steps.strict / steps.arrival;   // 1.04

#ifndef TOOLS_BENCH_PIPELINE_JITTER_H_
#define TOOLS_BENCH_PIPELINE_JITTER_H_

#include "absl/status/statusor.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::bench {

// Mean times of a step over the same noise, in the unit of the costs.
struct JitteredSteps {
  double arrival = 0;  // actions run in the order in which they become ready
  double strict = 0;   // actions run in the order of the table
};

// Multiplies times by numbers drawn uniformly from [1 - jitter, 1 + jitter],
// the same ones at each call. Errors: those of pipeline::SimulateStep().
absl::StatusOr<JitteredSteps> SimulateJitter(const pipeline::Plan& plan,
                                             const pipeline::StepCosts& costs,
                                             double jitter);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_PIPELINE_JITTER_H_
