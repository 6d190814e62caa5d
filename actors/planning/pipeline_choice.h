// Chooses the cuts of a job that leaves them open (JobSpec::open_pipeline), by
// measuring the parts of its model.
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
// A job calls this itself: process 0, before it makes the plan, which has the
// cuts for all other processes and for a resumed run. Two measurements may find
// different cuts, so a resumed run takes those of its checkpoint's plan, if
// they are still cuts of the model and the number of stages is the same.

#ifndef ACTORS_PLANNING_PIPELINE_CHOICE_H_
#define ACTORS_PLANNING_PIPELINE_CHOICE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Returns `spec` with the chosen cuts and without open_pipeline, which must be
// set. `plan`: the plan of the checkpoint to resume from; may be null. Calls
// spec.note with cuts that were measured.
//   kInvalidArgument: open_pipeline has no `measure` or no `set`.
//   the error of either.
absl::StatusOr<JobSpec> WithPipeline(const JobSpec& spec,
                                     const pipeline::Plan* plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_PIPELINE_CHOICE_H_
