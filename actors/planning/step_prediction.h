// What a step of a job will take, before it runs: its plan, its tables
// simulated with the costs of its stages, and the memory of its ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts costs,
//                           MeasureCosts(spec));
//   TROUPE_ASSIGN_OR_RETURN(const StepPrediction step,
//                           PredictStep(spec, &costs));
//   step.seconds, step.steady.bubble;
//   step.memory[1].total();                     // bytes of the ranks at pp 1
//
// Counted are forwards and backwards as they were measured, hand-overs between
// stages of one process, and updates; ranks begin the next step as soon as they
// have ended one. Not counted are reductions over replicas beyond what overlaps
// and the network between processes. Where ranks are more than cores, a step
// takes at least as long as its work takes the cores.

#ifndef ACTORS_PLANNING_STEP_PREDICTION_H_
#define ACTORS_PLANNING_STEP_PREDICTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "actors/planning/expected_memory.h"
#include "actors/spec/job_spec.h"
#include "pipeline/cut_search.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/steady_steps.h"

namespace troupe::actors {

struct StepPrediction {
  pipeline::Plan plan;
  pipeline::StepCosts costs;  // of its stages
  pipeline::SteadyStep steady;
  // What a step takes, in the unit of the costs: seconds, where they were
  // measured.
  double seconds = 0;
  // What one rank with the whole model would compute in a step.
  double work = 0;
  // What ranks need, by coordinate along pp; activations are those of the
  // simulated step.
  std::vector<ExpectedMemory> memory;
};

// `spec` has nothing open. `measured`: of its model; null: costs are by
// arithmetic, in FLOPs (pipeline/balance.h).
//   Errors of the plan, as pipeline::MakePlan().
absl::StatusOr<StepPrediction> PredictStep(
    const JobSpec& spec, const pipeline::ModelCosts* measured);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_STEP_PREDICTION_H_
