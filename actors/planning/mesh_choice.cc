#include "actors/planning/mesh_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/planning/expected_memory.h"
#include "actors/planning/mesh_search.h"
#include "actors/planning/reduction_costs.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/format_bytes.h"
#include "nn/modules/recompute.h"
#include "pipeline/balance.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::actors {
namespace {

std::string Bytes(double bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(bytes));
}

// Returns `spec` laid out as `mesh`, closed.
absl::StatusOr<JobSpec> Closed(const JobSpec& spec, const MeshChoice& mesh) {
  JobSpec closed = spec;
  closed.open_mesh.reset();
  TROUPE_RETURN_IF_ERROR(spec.open_mesh->set(mesh, closed));
  closed.plan.mesh_is_chosen = true;
  closed.plan.schedule_name = mesh.schedule;
  closed.plan.recomputes = mesh.recompute;
  return closed;
}

// Whether a job that was laid out for `plan` goes on in this way.
absl::StatusOr<bool> Fits(const JobSpec& spec, const pipeline::Plan& plan,
                          const MeshChoice& mesh) {
  const pipeline::PlanOptions& options = spec.plan;
  if (plan.mesh.size() != options.mesh.size() ||
      plan.global_batch_size != options.global_batch_size) {
    return false;
  }
  const absl::StatusOr<JobSpec> closed = Closed(spec, mesh);
  if (!closed.ok()) return false;
  TROUPE_ASSIGN_OR_RETURN(const ExpectedMemory memory,
                          ExpectMemory(*closed, plan));
  return memory.total() <= spec.open_mesh->memory_limit;
}

MeshSearch SearchOf(const JobSpec& spec) {
  const OpenMesh& open = *spec.open_mesh;
  MeshSearch search;
  static_cast<MeshRange&>(search) = open;
  search.ranks = spec.plan.mesh.size();
  search.global_batch_size = spec.plan.global_batch_size;
  search.measure = open.measure;
  search.reductions = LinkCosts(search.ranks, open.bandwidth);
  search.spec_of = [&spec](const MeshChoice& mesh) -> absl::StatusOr<JobSpec> {
    TROUPE_ASSIGN_OR_RETURN(JobSpec closed, Closed(spec, mesh));
    closed.open_pipeline.reset();
    return closed;
  };
  return search;
}

// Judges the meshes, the best first. Recomputation costs time, so it is tried
// only if something does not fit without.
absl::StatusOr<std::vector<JudgedMesh>> Judged(MeshSearch search) {
  const bool tries = std::exchange(search.tries_recompute, false);
  TROUPE_ASSIGN_OR_RETURN(std::vector<JudgedMesh> meshes, JudgeMeshes(search));
  const bool all_fit =
      std::none_of(meshes.begin(), meshes.end(), [](const JudgedMesh& judged) {
        return absl::IsResourceExhausted(judged.status);
      });
  if (!tries || all_fit) return meshes;
  search.tries_recompute = true;
  return JudgeMeshes(search);
}

// Returns the error of a job for which `meshes` are all there is.
absl::Status NoneFits(const JobSpec& spec,
                      const std::vector<JudgedMesh>& meshes) {
  const std::string ranks = absl::StrCat(spec.plan.mesh.size(), " ranks");
  const JudgedMesh& first = meshes.front();  // the smallest
  if (!absl::IsResourceExhausted(first.status)) {
    return base::WithMessage(
        first.status,
        absl::StrCat("no mesh of ", ranks, " can be: ", first.mesh.ToString(),
                     ": ", first.status.message()));
  }
  const double limit = spec.open_mesh->memory_limit;
  return base::FieldError<&OpenMesh::memory_limit>(absl::StrCat(
      "no mesh of ", ranks, " fits ",
      base::FieldName<&OpenMesh::memory_limit>(), " = ", Bytes(limit), ": ",
      first.mesh.ToString(), " needs least, ", Bytes(first.bytes), " a rank, ",
      Bytes(first.bytes - limit),
      " too much; raise the limit, add ranks, or lower the batch"));
}

std::string Words(const MeshChoice& choice) {
  std::string words = choice.ToString();
  if (!choice.schedule.empty()) {
    absl::StrAppend(&words, ", ", choice.schedule, " with ",
                    choice.virtual_stages,
                    choice.virtual_stages == 1 ? " chunk" : " chunks");
  }
  return absl::StrCat(words, ", ", choice.micro_batches, " x ",
                      choice.micro_batch_size, " samples");
}

// Says what was chosen, why, and how to have it always.
void Tell(const JobSpec& spec, const std::vector<JudgedMesh>& meshes) {
  if (spec.note == nullptr) return;
  const JudgedMesh& best = meshes.front();
  std::string line =
      absl::StrFormat("mesh: %s: by prediction %.3g ms a step, %s a rank",
                      Words(best.mesh), 1e3 * best.seconds, Bytes(best.bytes));
  const auto next = meshes.begin() + 1;
  if (next == meshes.end()) {
    absl::StrAppend(&line, "; there is no other");
  } else if (next->status.ok()) {
    absl::StrAppendFormat(&line, "; next %s, %.3g ms", next->mesh.ToString(),
                          1e3 * next->seconds);
  } else {
    absl::StrAppend(&line, "; no other fits");
  }
  if (const auto& settings_of = spec.open_mesh->settings_of) {
    absl::StrAppend(&line, "; to have it always: ", settings_of(best.mesh));
  }
  spec.note(line);
}

}  // namespace

std::optional<MeshChoice> ChoiceOf(const pipeline::Plan& plan) {
  if (!plan.mesh_is_chosen) return std::nullopt;
  MeshChoice choice;
  choice.dp = plan.mesh.dp();
  choice.pp = plan.mesh.pp();
  choice.tp = plan.mesh.tp();
  choice.virtual_stages = static_cast<int>(plan.stages.size()) / plan.mesh.pp();
  choice.schedule = plan.schedule_name;
  choice.micro_batch_size = plan.micro_batch_size;
  choice.micro_batches = plan.micro_batches;
  choice.recompute = plan.recomputes;
  choice.zero_stage = plan.zero_stage;
  return choice;
}

absl::StatusOr<JobSpec> WithMesh(const JobSpec& spec,
                                 const pipeline::Plan* plan) {
  const OpenMesh& open = *spec.open_mesh;
  if (open.measure == nullptr || open.set == nullptr) {
    return absl::InvalidArgumentError(
        "JobSpec::open_mesh has nothing that measures, or that sets; give "
        "both");
  }
  const std::optional<MeshChoice> before =
      plan != nullptr ? ChoiceOf(*plan) : std::nullopt;
  if (before.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(const bool fits, Fits(spec, *plan, *before));
    if (fits) return Closed(spec, *before);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<JudgedMesh> meshes,
                          Judged(SearchOf(spec)));
  if (!meshes.front().status.ok()) return NoneFits(spec, meshes);
  Tell(spec, meshes);
  return Closed(spec, meshes.front().mesh);
}

absl::StatusOr<JobSpec> WithMeshOf(const JobSpec& spec,
                                   const pipeline::Plan& plan) {
  const std::optional<MeshChoice> choice = ChoiceOf(plan);
  if (!choice.has_value()) {
    return absl::InternalError(
        "process 0 has sent a plan whose mesh it did not choose; start all "
        "processes with the same configuration");
  }
  return Closed(spec, *choice);
}

absl::Status SetMesh(const MeshChoice& mesh, JobSpec& spec) {
  pipeline::PlanOptions& options = spec.plan;
  options.mesh = pipeline::Mesh(mesh.dp, mesh.pp, mesh.tp);
  options.sequence_parallel &= mesh.tp > 1;
  options.micro_batch_size = mesh.micro_batch_size;
  options.virtual_stages = mesh.virtual_stages;
  options.zero_stage = mesh.zero_stage;
  options.placement.clear();
  options.schedule = nullptr;
  options.cuts.clear();
  if (mesh.recompute) {
    // Cannot fail: neither patterns nor a budget.
    spec.model = [whole = spec.model] {
      std::unique_ptr<nn::Module> model = whole();
      nn::RecomputeOptions all;
      all.every = 1;
      TROUPE_CHECK(nn::ApplyRecompute(*model, all, {}, {}).ok(),
                   "blocks of a model can be recomputed");
      return model;
    };
  }
  if (mesh.schedule.empty()) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(pipeline::SetSchedule(mesh.schedule, options));
  const std::size_t stages = options.placement.empty()
                                 ? std::size_t(mesh.pp * mesh.virtual_stages)
                                 : options.placement.size();
  const data::SampleSpec& sample = SamplesOf(spec)->spec();
  const nn::DType dtype =
      nn::IsFloating(sample.input_dtype) ? spec.dtype : sample.input_dtype;
  TROUPE_ASSIGN_OR_RETURN(
      options.cuts,
      pipeline::BalanceCuts(
          spec.model, {sample.InputShape(options.MicroBatchSize()), dtype},
          spec.device, static_cast<int>(stages), pipeline::Balance::kFlops,
          pipeline::PlacesOf(options.mesh, /*rank=*/0,
                             options.sequence_parallel, options.depth_blocks)));
  return absl::OkStatus();
}

}  // namespace troupe::actors
