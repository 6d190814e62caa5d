// Chooses the mesh of a job that leaves it open (JobSpec::open_mesh), by
// predicting the step of each way to lay it out (mesh_search.h).
//
//   spec.open_mesh.emplace();
//   spec.open_mesh->measure = MeasureCosts;
//   spec.open_mesh->set = SetMesh;
//   TROUPE_ASSIGN_OR_RETURN(spec, WithMesh(spec, /*plan=*/nullptr));
//   spec.plan.mesh;                                 // dp 2, pp 4
//
// A job calls this itself: process 0, before it makes the plan, which has the
// choice for all other processes and for a resumed run. Two measurements may
// prefer different meshes, so a resumed run takes that of its checkpoint's
// plan, if it was chosen there for as many ranks and samples, and fits.

#ifndef ACTORS_PLANNING_MESH_CHOICE_H_
#define ACTORS_PLANNING_MESH_CHOICE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "actors/spec/open_mesh.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Returns the layout that the job of `plan` has chosen; none if its mesh was
// given.
std::optional<MeshChoice> ChoiceOf(const pipeline::Plan& plan);

// Returns `spec`, whose open_mesh must be set, with the chosen mesh and without
// open_mesh. `plan`: the plan of the checkpoint to resume from; may be null.
// Calls spec.note with the choice and how to fix it.
//   kInvalidArgument: open_mesh has no `measure` or no `set`; no way fits its
//     memory_limit: names the one that needs least.
//   the error of either.
absl::StatusOr<JobSpec> WithMesh(const JobSpec& spec,
                                 const pipeline::Plan* plan);

// Returns `spec` with the mesh of `plan`, which process 0 of the job has made.
//   kInternal: its mesh was not chosen.
absl::StatusOr<JobSpec> WithMeshOf(const JobSpec& spec,
                                   const pipeline::Plan& plan);

// Lays out `spec`, as a function for OpenMesh::set: schedules by name, cuts
// that balance FLOPs (pipeline/balance.h), recomputation of all blocks.
// Sequence parallelism stays only where tp is above 1. The model is a
// Sequential.
absl::Status SetMesh(const MeshChoice& mesh, JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_MESH_CHOICE_H_
