#include "tools/trainer/commands/mesh_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/planning/dtype_choice.h"
#include "actors/planning/measure_costs.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "nn/kernels/kernel_choices.h"
#include "pipeline/mesh.h"

namespace troupe::tools {
namespace {

using actors::JudgedMesh;
using actors::MeshChoice;

// Latency of a reduction between processes where the bandwidth is given: some
// messages over a local network.
constexpr double kNetworkLatency = 50e-6;

bool SetsRecompute(const LoadedConfig& loaded) {
  return loaded.IsSet("model.recompute") ||
         loaded.IsSet("model.recompute_every") ||
         loaded.IsSet("model.recompute_budget");
}

// Returns the configuration with the mesh of `choice`.
LoadedConfig With(const LoadedConfig& loaded, const MeshChoice& choice) {
  LoadedConfig changed = loaded;
  TrainerConfig& config = changed.config;
  pipeline::PlanOptions& plan = config.job.plan;
  plan.mesh = pipeline::Mesh(choice.dp, choice.pp, plan.mesh.tp());
  plan.micro_batch_size = choice.micro_batch_size;
  plan.virtual_stages = choice.virtual_stages;
  config.pipeline.schedule =
      choice.schedule.empty() ? kAutoSchedule : choice.schedule;
  if (choice.recompute) config.model.recompute_every = 1;
  if (choice.zero_stage > 0) plan.zero_stage = choice.zero_stage;
  return changed;
}

// Whether the configuration leaves the choice to the list.
bool IsOpen(const LoadedConfig& loaded, const MeshChoice& choice) {
  const TrainerConfig& config = loaded.config;
  if (choice.pp == 1) return true;
  const bool right_schedule = config.pipeline.schedule == kAutoSchedule ||
                              config.pipeline.schedule == kSearchSchedule ||
                              config.pipeline.schedule == choice.schedule;
  const bool right_chunks =
      !loaded.IsSet("mesh.virtual_stages") ||
      config.job.plan.virtual_stages == choice.virtual_stages;
  return right_schedule && right_chunks;
}

std::string Bytes(double bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(bytes));
}

std::string MeshOf(const MeshChoice& mesh) {
  std::string text = absl::StrCat("dp ", mesh.dp, ", pp ", mesh.pp);
  if (mesh.recompute) absl::StrAppend(&text, ", recomputed");
  if (mesh.zero_stage > 0) absl::StrAppend(&text, ", ZeRO");
  return text;
}

std::string RowOf(const JudgedMesh& judged, bool is_best) {
  const MeshChoice& mesh = judged.mesh;
  return absl::StrFormat(
      "%s %-4d %-4d %-20s %-7s %-12s %-10s %-5s %9.4g ms %6.1f%% %11s %11s\n",
      is_best ? "*" : " ", mesh.dp, mesh.pp,
      mesh.schedule.empty() ? "-" : mesh.schedule,
      mesh.pp == 1 ? "-" : absl::StrCat(mesh.virtual_stages),
      absl::StrCat(mesh.micro_batches, " x ", mesh.micro_batch_size),
      mesh.recompute ? "all" : "-",
      mesh.zero_stage > 0 ? absl::StrCat(mesh.zero_stage) : "-",
      1e3 * judged.seconds, 100 * judged.bubble, Bytes(judged.bytes),
      Bytes(judged.bytes_sent));
}

}  // namespace

std::string MeshSettings(const LoadedConfig& loaded, const MeshChoice& mesh) {
  std::string text =
      absl::StrCat("--set mesh.dp=", mesh.dp, " --set mesh.pp=", mesh.pp,
                   " --set train.micro_batch_size=", mesh.micro_batch_size);
  if (mesh.pp > 1) {
    absl::StrAppend(&text, " --set mesh.schedule=", mesh.schedule,
                    " --set mesh.virtual_stages=", mesh.virtual_stages);
    if (loaded.config.pipeline.balance == "measured") {
      absl::StrAppend(&text, " --set mesh.balance=measured");
    }
  }
  if (mesh.recompute) absl::StrAppend(&text, " --set model.recompute_every=1");
  if (mesh.zero_stage > 0) {
    absl::StrAppend(&text, " --set zero.stage=", mesh.zero_stage);
  }
  return text;
}

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
  absl::StrAppendFormat(&text,
                        "  %-4s %-4s %-20s %-7s %-12s %-10s %-5s %12s %7s %11s "
                        "%11s\n",
                        "dp", "pp", "schedule", "chunks", "batches",
                        "recomputed", "zero", "step", "bubble", "memory",
                        "sent");
  bool has_best = false;
  for (const JudgedMesh& judged : meshes) {
    if (!judged.status.ok()) continue;
    absl::StrAppend(&text, RowOf(judged, /*is_best=*/!has_best));
    has_best = true;
  }
  const auto left = std::find_if(meshes.begin(), meshes.end(),
                                 [](const auto& m) { return !m.status.ok(); });
  if (left != meshes.end()) absl::StrAppend(&text, "\n");
  for (auto judged = left; judged != meshes.end(); ++judged) {
    absl::StrAppend(&text, "not ", MeshOf(judged->mesh), ": ",
                    judged->status.message(), "\n");
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
                        const data::DataSplits& splits,
                        const MeshListOptions& options, base::FileSystem& files,
                        const std::function<bool(absl::string_view)>& write) {
  const pipeline::PlanOptions& plan = loaded.config.job.plan;
  actors::MeshSearch search;
  search.ranks = plan.mesh.size() / plan.mesh.tp();
  search.global_batch_size = plan.global_batch_size;
  if (loaded.IsSet("train.micro_batch_size")) {
    search.micro_batch_size = plan.micro_batch_size;
  }
  search.tries_recompute = !SetsRecompute(loaded);
  search.tries_zero = !loaded.IsSet("zero.stage") && plan.mesh.tp() == 1;
  if (loaded.config.pipeline.memory_limit > 0) {
    search.memory_limit =
        static_cast<double>(loaded.config.pipeline.memory_limit);
  }
  if (options.bandwidth > 0) {
    search.reductions = {kNetworkLatency, options.bandwidth};
  } else {
    search.reductions = actors::MeasureReductionCosts(search.ranks);
  }
  const auto choices = std::make_shared<nn::KernelChoices>();
  search.spec_of =
      [&](const MeshChoice& choice) -> absl::StatusOr<actors::JobSpec> {
    if (!IsOpen(loaded, choice)) {
      return absl::InvalidArgumentError(
          "mesh.schedule or mesh.virtual_stages is set to another; remove it "
          "to compare");
    }
    const LoadedConfig changed = With(loaded, choice);
    TROUPE_RETURN_IF_ERROR(CheckConfig(changed));
    TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                            BuildSpec(changed, splits, files));
    spec.kernel_choices = choices;
    if (spec.open_dtype.has_value()) {
      TROUPE_ASSIGN_OR_RETURN(spec, actors::WithDType(spec, /*plan=*/nullptr));
    }
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
