// Chooses the cuts of a job that leaves them open, by measuring the parts of
// its model.
//
//   spec.open_pipeline.emplace();
//   spec.open_pipeline->measure = MeasureCosts;
//   spec.open_pipeline->set = [](const pipeline::ModelCosts& costs,
//                                pipeline::PlanOptions& plan) -> absl::Status {
//     TROUPE_ASSIGN_OR_RETURN(pipeline::FoundCuts found,
//                             pipeline::FindCuts(costs, OptionsOf(plan)));
//     plan.cuts = std::move(found.cuts);
//     return absl::OkStatus();
//   };
//   TROUPE_ASSIGN_OR_RETURN(spec, WithPipeline(spec, /*plan=*/nullptr));
//
// A job closes what is open itself: process 0 before it makes the plan, which
// has the cuts for all others and for whoever goes on from a checkpoint. Two
// measurements may find other cuts, so a run that goes on takes those of its
// plan, where they are still cuts of the model and its ranks are as many.

#ifndef ACTORS_PLANNING_PIPELINE_CHOICE_H_
#define ACTORS_PLANNING_PIPELINE_CHOICE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// `spec` without open_pipeline, which it has. `plan`: of the run that it goes
// on from; null: there is none. Says in spec.note what was chosen.
//   kInvalidArgument: nothing measures, or sets. What these two fail with.
absl::StatusOr<JobSpec> WithPipeline(const JobSpec& spec,
                                     const pipeline::Plan* plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_PIPELINE_CHOICE_H_
