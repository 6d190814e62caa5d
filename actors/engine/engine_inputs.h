// Derives from a plan what the step engine of a rank is made from: tables in
// the form that it walks, and the setup of its chunks. The engine is that of a
// job (step_runner.h) or of a loop's pipeline (loop/pipeline_engine.h).
//
//   const pipeline::StepTable train = BoundedTable(table, plan, rank);
//   const std::vector<int> buckets = BucketsOf(plan, rank);
//   Chunk::Setup setup = ChunkSetupOf(*parts, plan.StagesOf(rank)[c], c);
//
// Cost: linear in the table and the plan.

#ifndef ACTORS_ENGINE_ENGINE_INPUTS_H_
#define ACTORS_ENGINE_ENGINE_INPUTS_H_

#include <vector>

#include "actors/chunks/chunk.h"
#include "actors/engine/engine_parts.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

// Returns the rank's table for training, with the needs that bound the order
// in which its actions run.
pipeline::StepTable BoundedTable(pipeline::StepTable table,
                                 const pipeline::Plan& plan, int rank);

// Returns the number of buckets of each of the rank's chunks.
std::vector<int> BucketsOf(const pipeline::Plan& plan, int rank);

// Returns the setup of the rank's chunk number `chunk`, which holds `stage`.
// Trace, scalars and the gradient of the loss are the engine's to set.
Chunk::Setup ChunkSetupOf(const EngineParts& parts, int stage, int chunk);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ENGINE_INPUTS_H_
