// Places a Trainer's ranks: their mesh, the stages of a pipeline, and this
// process among those of the job.
//
//   TROUPE_ASSIGN_OR_RETURN(spec.plan.mesh, TrainerMesh(options));
//   spec.plan.zero_stage = TrainerZeroStage(options);
//   // With model, dtype, data and batches:
//   TROUPE_RETURN_IF_ERROR(SetPipeline(options, spec));
//   TROUPE_ASSIGN_OR_RETURN(spec.cluster, TrainerCluster(options));
//
// Errors: kInvalidArgument that names the option (base/field_error.h).

#ifndef TROUPE_TRAINER_TRAINER_PLACEMENT_H_
#define TROUPE_TRAINER_TRAINER_PLACEMENT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/spec/cluster_options.h"
#include "actors/spec/job_spec.h"
#include "pipeline/mesh.h"
#include "troupe/trainer_options.h"

namespace troupe {

// Returns the mesh of all ranks: replicas, and stages of a pipeline.
absl::StatusOr<pipeline::Mesh> TrainerMesh(const TrainerOptions& options);

// Returns the stage of ZeRO that the strategy says; 0: none.
int TrainerZeroStage(const TrainerOptions& options);

// Sets schedule and cuts if the mesh has a pipeline.
absl::Status SetPipeline(const TrainerOptions& options, actors::JobSpec& spec);

// Returns the place of this process: that of the options, or of the launcher;
// none if it is the only one.
//   kInvalidArgument: there are several nodes and no launcher, or another
//     number of nodes; errors of actors::ClusterOf().
absl::StatusOr<std::optional<actors::ClusterOptions>> TrainerCluster(
    const PlacementOptions& options);

}  // namespace troupe

#endif  // TROUPE_TRAINER_TRAINER_PLACEMENT_H_
