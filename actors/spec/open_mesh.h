// A mesh that a job chooses itself when it starts, and ways to lay out a job.
//
//   JobSpec spec;
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/8);     // eight ranks
//   OpenMesh& open = spec.open_mesh.emplace();
//   open.memory_limit = 2.0 * (1 << 30);           // bytes of a rank
//   open.measure = MeasureCosts;                   // planning/measure_costs.h
//   open.set = SetMesh;                            // planning/mesh_choice.h
//
// Process 0 predicts the step of each way (actors/planning/mesh_search.h)
// before it makes the plan, which records the choice for the other processes
// and for a resumed run.

#ifndef ACTORS_SPEC_OPEN_MESH_H_
#define ACTORS_SPEC_OPEN_MESH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "pipeline/cut_search.h"
#include "pipeline/plan_choices.h"

namespace troupe::actors {

struct JobSpec;

// A way to lay out a job.
struct MeshChoice {
  int dp = 1, pp = 1, tp = 1;
  int virtual_stages = 1;  // chunks of each rank
  std::string schedule;    // name (pipeline/schedules); empty: pp is 1
  std::int64_t micro_batch_size = 1;
  int micro_batches = 1;
  bool recompute = false;  // activations of all blocks
  int zero_stage = 0;      // PlanOptions::zero_stage

  // Returns "dp 4, pp 2, recomputed, ZeRO 1"; with tp only if it is above 1.
  std::string ToString() const {
    return absl::StrCat(
        "dp ", dp, tp > 1 ? absl::StrCat(", tp ", tp) : "", ", pp ", pp,
        recompute ? ", recomputed" : "",
        zero_stage > 0 ? absl::StrCat(", ZeRO ", zero_stage) : "");
  }
};

// Returns all stages of ZeRO that a job may have.
inline std::vector<int> AllZeroStages() {
  std::vector<int> stages;
  for (int stage = 0; stage <= pipeline::kZeroStageMax; ++stage) {
    stages.push_back(stage);
  }
  return stages;
}

// Ways to lay out a job that are compared.
struct MeshRange {
  static constexpr char kFieldsOf[] = "OpenMesh";  // base/field_error.h

  // Size of micro-batches; 0: sizes that give a replica pp, 2 pp or 4 pp of
  // them.
  std::int64_t micro_batch_size = 0;
  // Ranks along tp; 0: each number that divides the ranks.
  int tp = 0;
  bool tries_recompute = true;
  // Stages of ZeRO; those above 0 are compared only if there are replicas.
  std::vector<int> zero_stages = AllZeroStages();
  // Limit in bytes on what a rank needs.
  double memory_limit = std::numeric_limits<double>::infinity();
};

struct OpenMesh : MeshRange {
  // Bytes a second that a rank sends to others; 0: measured between threads of
  // this process.
  double bandwidth = 0;
  // Returns seconds and bytes of the model's parts, as MeasureCosts() does.
  std::function<absl::StatusOr<pipeline::ModelCosts>(const JobSpec& spec)>
      measure;
  // Lays out `spec`, whose mesh has as many ranks: sets the fields of its plan
  // and, for recomputation, its model. Errors say why a way cannot be.
  std::function<absl::Status(const MeshChoice& mesh, JobSpec& spec)> set;
  // Returns what to write to have this mesh always, for JobSpec::note. Null:
  // nothing is said.
  std::function<std::string(const MeshChoice& mesh)> settings_of;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_OPEN_MESH_H_
