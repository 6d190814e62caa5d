// Makes the plan of a program's pipeline, and says what does not fit together
// in the words of the program.
//
//   const pipeline::Plan plan = MakePipelinePlan(rank, make, options);
//   ComparePlans(rank, plan);                 // all ranks call it
//
// Errors: base::StatusError. Threads: the rank's own.

#ifndef TROUPE_STAGES_PIPELINE_PLAN_H_
#define TROUPE_STAGES_PIPELINE_PLAN_H_

#include "actors/spec/job_fields.h"
#include "pipeline/plan.h"
#include "troupe/pipeline_parallel.h"
#include "troupe/rank.h"

namespace troupe {

// Returns the plan of a job with these options, with the actions of any
// optimizer (actors/engine/loop/pipeline_engine.h). The mesh is the rank's.
//   kInvalidArgument: names what to change, also in SpawnOptions.
pipeline::Plan MakePipelinePlan(Rank& rank, const actors::JobModel& make,
                                const PipelineOptions& options);

// Checks that all ranks have the same plan: they call it together.
//   kInvalidArgument: names a rank that has another one.
void ComparePlans(Rank& rank, const pipeline::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_STAGES_PIPELINE_PLAN_H_
