#include "tools/trainer/commands/mesh_list.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "actors/planning/dtype_choice.h"
#include "actors/planning/measure_costs.h"
#include "actors/planning/reduction_costs.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "nn/kernels/kernel_choices.h"
#include "pipeline/mesh.h"
#include "tools/trainer/run/mesh_choices.h"

namespace troupe::tools {
namespace {

using actors::JudgedMesh;
using actors::MeshChoice;

std::string Bytes(double bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(bytes));
}

// Returns the reason of an error, in which the mesh is not named.
std::string ReasonOf(const JudgedMesh& judged) {
  const MeshChoice& mesh = judged.mesh;
  return absl::StrReplaceAll(
      judged.status.message(),
      {{pipeline::Mesh(mesh.dp, mesh.pp, mesh.tp).ToString(), "this mesh"},
       {"PlanOptions.", ""}});
}

// Returns the reasons why meshes are refused, and the meshes of each, in order.
std::vector<std::pair<std::string, std::string>> Refused(
    const std::vector<JudgedMesh>& meshes) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const JudgedMesh& judged : meshes) {
    const std::string why = ReasonOf(judged);
    const auto same =
        std::find_if(groups.begin(), groups.end(),
                     [&](const auto& group) { return group.first == why; });
    if (same == groups.end()) {
      groups.emplace_back(why, judged.mesh.ToString());
    } else {
      absl::StrAppend(&same->second, "; ", judged.mesh.ToString());
    }
  }
  return groups;
}

std::string RowOf(const JudgedMesh& judged, bool is_best) {
  const MeshChoice& mesh = judged.mesh;
  return absl::StrFormat(
      "%s %-4d %-4d %-4d %-20s %-7s %-12s %-10s %-5s %9.4g ms %6.1f%% %11s "
      "%11s\n",
      is_best ? "*" : " ", mesh.dp, mesh.tp, mesh.pp,
      mesh.schedule.empty() ? "-" : mesh.schedule,
      mesh.pp == 1 ? "-" : absl::StrCat(mesh.virtual_stages),
      absl::StrCat(mesh.micro_batches, " x ", mesh.micro_batch_size),
      mesh.recompute ? "all" : "-",
      mesh.zero_stage > 0 ? absl::StrCat(mesh.zero_stage) : "-",
      1e3 * judged.seconds, 100 * judged.bubble, Bytes(judged.bytes),
      Bytes(judged.bytes_sent));
}

}  // namespace

std::string MeshListText(const LoadedConfig& loaded,
                         const std::vector<JudgedMesh>& meshes) {
  const pipeline::PlanOptions& plan = loaded.config.job.plan;
  const std::int64_t limit = loaded.config.pipeline.memory_limit;
  std::string text = absl::StrCat(
      "meshes of ", plan.mesh.size(), " ranks for global batches of ",
      plan.global_batch_size,
      limit > 0 ? absl::StrCat(", at most ", Bytes(static_cast<double>(limit)),
                               " a rank")
                : "",
      "\n\n");
  absl::StrAppendFormat(
      &text,
      "  %-4s %-4s %-4s %-20s %-7s %-12s %-10s %-5s %12s %7s %11s "
      "%11s\n",
      "dp", "tp", "pp", "schedule", "chunks", "batches", "recomputed", "zero",
      "step", "bubble", "memory", "sent");
  bool has_best = false;
  for (const JudgedMesh& judged : meshes) {
    if (!judged.status.ok()) continue;
    absl::StrAppend(&text, RowOf(judged, /*is_best=*/!has_best));
    has_best = true;
  }
  const auto left = std::find_if(meshes.begin(), meshes.end(),
                                 [](const auto& m) { return !m.status.ok(); });
  if (left != meshes.end()) absl::StrAppend(&text, "\n");
  for (const auto& [why, which] : Refused({left, meshes.end()})) {
    absl::StrAppend(&text, "not ", which, ": ", why, "\n");
  }
  absl::StrAppend(
      &text, has_best
                 ? absl::StrCat("\nthe fastest, as settings: ",
                                MeshSettings(loaded, meshes[0].mesh), "\n")
                 : "\nnone fits; add ranks, raise mesh.memory_limit, or lower "
                   "train.global_batch_size\n");
  return text;
}

absl::Status ShowMeshes(const LoadedConfig& loaded,
                        const data::DataSplits& splits, base::FileSystem& files,
                        const std::function<bool(absl::string_view)>& write) {
  LoadedConfig given = loaded;
  given.config.pipeline.auto_mesh = false;
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec base,
                          BuildSpec(given, splits, files));
  base.kernel_choices = std::make_shared<nn::KernelChoices>();
  if (base.open_dtype.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(base, actors::WithDType(base, /*plan=*/nullptr));
  }
  actors::MeshSearch search;
  static_cast<actors::MeshRange&>(search) = MeshRangeOf(given);
  search.ranks = base.plan.mesh.size();
  search.global_batch_size = base.plan.global_batch_size;
  search.reductions =
      actors::LinkCosts(search.ranks, given.config.pipeline.bandwidth);
  search.spec_of =
      [&](const MeshChoice& choice) -> absl::StatusOr<actors::JobSpec> {
    actors::JobSpec spec = base;
    TROUPE_RETURN_IF_ERROR(LayOut(given, splits, files, choice, spec));
    spec.open_pipeline.reset();
    return spec;
  };
  search.measure = actors::MeasureCosts;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<JudgedMesh> meshes,
                          JudgeMeshes(search));
  write(MeshListText(loaded, meshes));
  return absl::OkStatus();
}

}  // namespace troupe::tools
