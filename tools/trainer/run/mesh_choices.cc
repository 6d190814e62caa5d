#include "tools/trainer/run/mesh_choices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/planning/measure_costs.h"
#include "base/check.h"
#include "pipeline/mesh.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {
namespace {

using actors::MeshChoice;

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
  config.pipeline.auto_mesh = false;
  plan.mesh = pipeline::Mesh(choice.dp, choice.pp, choice.tp);
  plan.sequence_parallel &= choice.tp > 1;
  plan.micro_batch_size = choice.micro_batch_size;
  plan.virtual_stages = choice.virtual_stages;
  config.pipeline.schedule =
      choice.schedule.empty() ? kAutoSchedule : choice.schedule;
  if (choice.recompute) config.model.recompute_every = 1;
  plan.zero_stage = choice.zero_stage;
  return changed;
}

// Whether the configuration leaves the choice open.
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

}  // namespace

actors::MeshRange MeshRangeOf(const LoadedConfig& loaded) {
  const TrainerConfig& config = loaded.config;
  const pipeline::PlanOptions& plan = config.job.plan;
  actors::MeshRange range;
  if (loaded.IsSet("train.micro_batch_size")) {
    range.micro_batch_size = plan.micro_batch_size;
  }
  if (loaded.IsSet("mesh.tp")) range.tp = plan.mesh.tp();
  range.tries_recompute = !SetsRecompute(loaded);
  if (loaded.IsSet("zero.stage")) range.zero_stages = {plan.zero_stage};
  if (config.pipeline.memory_limit > 0) {
    range.memory_limit = static_cast<double>(config.pipeline.memory_limit);
  }
  return range;
}

absl::Status LayOut(const LoadedConfig& loaded, const data::DataSplits& splits,
                    base::FileSystem& files, const MeshChoice& choice,
                    actors::JobSpec& spec) {
  if (!IsOpen(loaded, choice)) {
    return absl::InvalidArgumentError(
        "mesh.schedule or mesh.virtual_stages is set to another; remove it "
        "to compare");
  }
  const LoadedConfig changed = With(loaded, choice);
  TROUPE_RETURN_IF_ERROR(CheckConfig(changed));
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec built,
                          BuildSpec(changed, splits, files));
  // The dtype is chosen before the mesh.
  if (built.open_dtype.has_value()) built.open_dtype->set(spec.dtype, built);
  spec.plan = std::move(built.plan);
  spec.model = std::move(built.model);
  spec.open_pipeline = std::move(built.open_pipeline);
  return absl::OkStatus();
}

actors::OpenMesh OpenMeshOf(const LoadedConfig& loaded,
                            const data::DataSplits& splits,
                            base::FileSystem& files) {
  actors::OpenMesh open;
  static_cast<actors::MeshRange&>(open) = MeshRangeOf(loaded);
  open.bandwidth = loaded.config.pipeline.bandwidth;
  open.measure = actors::MeasureCosts;
  open.set = [loaded, splits, &files](const MeshChoice& choice,
                                      actors::JobSpec& spec) {
    return LayOut(loaded, splits, files, choice, spec);
  };
  open.settings_of = [loaded](const MeshChoice& choice) {
    return absl::StrCat("--set mesh.auto=false ", MeshSettings(loaded, choice));
  };
  return open;
}

std::string MeshSettings(const LoadedConfig& loaded, const MeshChoice& mesh) {
  std::string text =
      absl::StrCat("--set mesh.dp=", mesh.dp, " --set mesh.pp=", mesh.pp,
                   " --set train.micro_batch_size=", mesh.micro_batch_size);
  if (mesh.tp > 1 || loaded.config.job.plan.mesh.tp() > 1) {
    absl::StrAppend(&text, " --set mesh.tp=", mesh.tp);
  }
  if (mesh.tp == 1 && loaded.config.job.plan.sequence_parallel) {
    absl::StrAppend(&text, " --set mesh.sequence_parallel=false");
  }
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

}  // namespace troupe::tools
