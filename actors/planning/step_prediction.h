// Predicts the time and memory of a job's step before it runs: makes its plan,
// and simulates its tables with the costs of its stages.
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
// have ended one. Reductions over replicas, gathers of values (ZeRO) and sums
// of layers over tp are counted if their costs are given (reduction_costs.h);
// else they are assumed to overlap. Messages of a pipeline
// between processes are not counted. Where there are more ranks than cores, a
// step takes at least as long as the cores need for its work.

#ifndef ACTORS_PLANNING_STEP_PREDICTION_H_
#define ACTORS_PLANNING_STEP_PREDICTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "actors/planning/expected_memory.h"
#include "actors/planning/reduction_costs.h"
#include "actors/spec/job_spec.h"
#include "pipeline/cut_search.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/steady_steps.h"

namespace troupe::actors {

struct StepPrediction {
  pipeline::Plan plan;
  pipeline::StepCosts costs;  // costs of the plan's stages
  pipeline::SteadyStep steady;
  // Time of a step, in the unit of the costs: seconds, if they were measured.
  double seconds = 0;
  // Time that one rank with the whole model would compute in a step.
  double work = 0;
  // Bytes that the rank that sends most sends in reductions over replicas, and
  // in sums of layers over tp if costs were measured.
  double bytes_sent = 0;
  // Memory of ranks, by coordinate along pp. Activations are those of the
  // simulated step.
  std::vector<ExpectedMemory> memory;
};

// Predicts a step of `spec`, which has neither open_dtype nor open_pipeline.
// `measured`: the costs of its model; null: costs are computed from the model's
// shapes, in FLOPs (pipeline/balance.h).
// `reductions`: null, or what collectives over replicas and over tp cost, in
// the same unit. Those of layers are counted only if costs were measured.
//   Errors: the same as pipeline::MakePlan().
absl::StatusOr<StepPrediction> PredictStep(
    const JobSpec& spec, const pipeline::ModelCosts* measured,
    const ReductionCosts* reductions = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_STEP_PREDICTION_H_
