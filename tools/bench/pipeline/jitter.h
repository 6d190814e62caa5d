// How long steps of a pipeline take where no stage is punctual: its tables,
// simulated many times, each action's time with noise of its own.
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

// Means over the same noise, in the unit of the costs.
struct JitteredSteps {
  double arrival = 0;  // the first action that may run goes first
  double strict = 0;   // in the order of the table
};

// Times are multiplied by numbers drawn evenly from [1 - jitter, 1 + jitter];
// the same ones at each call. Errors of pipeline::SimulateStep().
absl::StatusOr<JitteredSteps> SimulateJitter(const pipeline::Plan& plan,
                                             const pipeline::StepCosts& costs,
                                             double jitter);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_PIPELINE_JITTER_H_
