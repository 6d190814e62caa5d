// Compares the ways to lay out a job on a number of ranks: replicas, tensor
// parallelism, stages, schedules, sizes of micro-batches, recomputation, ZeRO.
// Predicts the step of each, and says why the others cannot be.
//
//   MeshSearch search;
//   search.ranks = 8;
//   search.global_batch_size = 64;
//   search.memory_limit = 2.0 * (1 << 30);
//   search.measure = MeasureCosts;
//   search.spec_of = [&](const MeshChoice& mesh) -> absl::StatusOr<JobSpec> {
//     JobSpec spec = base;
//     spec.plan.mesh = pipeline::Mesh(mesh.dp, mesh.pp, mesh.tp);
//     spec.plan.micro_batch_size = mesh.micro_batch_size;
//     return spec;
//   };
//   TROUPE_ASSIGN_OR_RETURN(std::vector<JudgedMesh> meshes,
//                           JudgeMeshes(search));
//   meshes[0].mesh;              // of those that fit, the fastest
//   meshes.back().status;        // "needs 3.1 GiB a rank, 1.1 GiB more ..."
//
// Steps are predicted from the measured costs of the model's parts
// (measure_costs.h), which are measured once for each size of micro-batch, each
// number of ranks along tp, and with and without recomputation: half a second
// each.

#ifndef ACTORS_PLANNING_MESH_SEARCH_H_
#define ACTORS_PLANNING_MESH_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/planning/reduction_costs.h"
#include "actors/spec/job_spec.h"
#include "actors/spec/open_mesh.h"
#include "pipeline/cut_search.h"

namespace troupe::actors {

struct MeshSearch : MeshRange {
  int ranks = 1;
  std::int64_t global_batch_size = 1;
  // Makes the job, without open choices. Its errors say why a choice cannot be.
  std::function<absl::StatusOr<JobSpec>(const MeshChoice&)> spec_of;
  // Measures a job's model: MeasureCosts().
  std::function<absl::StatusOr<pipeline::ModelCosts>(const JobSpec&)> measure;
  ReductionCosts reductions;
};

struct JudgedMesh {
  MeshChoice mesh;
  // kResourceExhausted: it needs more than the limit; the numbers below are
  // set. Other errors: it cannot be.
  absl::Status status;
  double seconds = 0;  // a step takes so long
  double bubble = 0;   // idle part of the ranks' time, from 0 to 1
  double bytes = 0;    // memory of the rank that needs most
  // Bytes that a rank sends in a step, as StepPrediction::bytes_sent.
  double bytes_sent = 0;
};

// Returns the choices to compare: divisors of `ranks` as tp and pp, and for
// each the schedules by name with one chunk a rank and with two. A schedule
// that does not take the sizes, or a model that cannot be split, is found out
// later.
std::vector<MeshChoice> MeshChoices(const MeshSearch& search);

// Returns for each size of the mesh, with and without recomputation and ZeRO,
// the fastest choice that fits, the fastest first; of several within one
// percent, the first has neither if possible, and the fewest ranks along tp and
// stages. Behind them stand those that need too much memory, the smallest
// first, and those that cannot be, each with its error: a choice with
// recomputation or ZeRO only if it could be without. Calls `progress` with the
// number of choices judged and of all, unless it is null.
//   kInvalidArgument: a number is below 1, or a function is not set.
//   the error of `measure`.
absl::StatusOr<std::vector<JudgedMesh>> JudgeMeshes(
    const MeshSearch& search,
    const std::function<void(int judged, int all)>& progress = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_MESH_SEARCH_H_
