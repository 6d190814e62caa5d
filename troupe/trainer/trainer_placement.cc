#include "troupe/trainer/trainer_placement.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "actors/launchers/cluster_from_environment.h"
#include "base/check.h"
#include "pipeline/balance.h"
#include "pipeline/plan_choices.h"
#include "pipeline/schedules/schedules.h"
#include "troupe/trainer/option_error.h"

namespace troupe {
namespace {

using O = TrainerOptions;

constexpr char kPipeline[] = "pipeline:";
constexpr char kDeepSpeed[] = "deepspeed_stage_";
// The last one of these by PyTorch's name.
constexpr char kFsdp[] = "fsdp";

absl::Status CheckStrategy(const TrainerOptions& options) {
  const std::string& strategy = options.strategy;
  if (strategy == "auto" || strategy == "ddp" ||
      absl::StartsWith(strategy, kPipeline) || TrainerZeroStage(options) > 0) {
    return absl::OkStatus();
  }
  const std::string works = absl::StrCat(
      "use \"ddp\", by which each rank has the whole model, \"", kDeepSpeed, 2,
      "\", by which it has a part of the optimizer's states and of the "
      "gradients, \"",
      kFsdp,
      "\", also of the parameters, or "
      "\"pipeline:1f1b\", by which it has a part of the model");
  if (absl::StartsWith(strategy, kFsdp) ||
      absl::StartsWith(strategy, "deepspeed")) {
    return RefuseOption<&O::strategy>(
        options,
        absl::StrCat(": ZeRO has the stages 1 to ", pipeline::kZeroStageMax,
                     " here, without offloading; ", works));
  }
  return RefuseOption<&O::strategy>(options,
                                    absl::StrCat(": is no strategy; ", works));
}

}  // namespace

int TrainerZeroStage(const TrainerOptions& options) {
  if (options.strategy == kFsdp) return pipeline::kZeroStageMax;
  absl::string_view number = options.strategy;
  int stage = 0;
  const bool is_stage = absl::ConsumePrefix(&number, kDeepSpeed) &&
                        absl::SimpleAtoi(number, &stage) &&
                        stage <= pipeline::kZeroStageMax;
  return is_stage ? std::max(stage, 0) : 0;
}

absl::StatusOr<pipeline::Mesh> TrainerMesh(const TrainerOptions& options) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::devices>(1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::num_nodes>(1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::pipeline_stages>(0, options));
  TROUPE_RETURN_IF_ERROR(CheckStrategy(options));
  const int ranks = options.devices * options.num_nodes;
  if (!absl::StartsWith(options.strategy, kPipeline)) {
    if (options.pipeline_stages <= 1) return pipeline::Mesh(ranks);
    return RefuseOption<&O::pipeline_stages>(
        options, "; it is for the strategy \"pipeline:1f1b\" and its like");
  }
  const int stages =
      options.pipeline_stages > 0 ? options.pipeline_stages : options.devices;
  if (stages < 2) {
    return RefuseOption<&O::strategy>(
        options,
        " needs two ranks or more; set devices = 2, or "
        "strategy = \"ddp\"");
  }
  if (ranks % stages == 0) return pipeline::Mesh(ranks / stages, stages);
  return RefuseOption<&O::pipeline_stages>(
      options, absl::StrCat(": the ", ranks,
                            " ranks (devices x num_nodes) are no multiple of "
                            "it; change either"));
}

absl::Status SetPipeline(const TrainerOptions& options, actors::JobSpec& spec) {
  pipeline::PlanOptions& plan = spec.plan;
  if (plan.mesh.pp() == 1) return absl::OkStatus();
  absl::string_view name = options.strategy;
  absl::ConsumePrefix(&name, kPipeline);
  int stages = plan.mesh.pp();
  for (const pipeline::NamedSchedule& known : pipeline::NamedSchedules()) {
    if (known.name != name) continue;
    plan.virtual_stages = known.chunks == 0 ? 2 : known.chunks;
    stages *= plan.virtual_stages;
  }
  const absl::Status set = pipeline::SetSchedule(name, plan);
  if (!set.ok()) {
    return RefuseOption<&O::strategy>(options,
                                      absl::StrCat(": ", set.message()));
  }
  const data::SampleSpec& sample = actors::SamplesOf(spec)->spec();
  const nn::DType dtype =
      nn::IsFloating(sample.input_dtype) ? spec.dtype : sample.input_dtype;
  TROUPE_ASSIGN_OR_RETURN(
      plan.cuts,
      pipeline::BalanceCuts(spec.model,
                            {sample.InputShape(plan.MicroBatchSize()), dtype},
                            spec.device, stages, pipeline::Balance::kFlops));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<actors::ClusterOptions>> TrainerCluster(
    const PlacementOptions& options) {
  if (options.cluster.has_value()) return options.cluster;
  TROUPE_ASSIGN_OR_RETURN(const actors::Placement placement,
                          actors::PlacementFromEnvironment());
  if (placement.processes == 1 && options.num_nodes > 1) {
    return RefuseOption<&O::num_nodes>(
        options,
        ", and no launcher has started this process; start it on each node by "
        "\"trainer launch --program=PATH\", torchrun, srun or mpirun");
  }
  const bool counts_nodes = placement.processes > 1 && placement.node >= 0;
  if (counts_nodes && placement.nodes != options.num_nodes) {
    return RefuseOption<&O::num_nodes>(
        options,
        absl::StrCat(", and ", placement.found_by, " has started ",
                     placement.nodes, " nodes; make the numbers equal"));
  }
  return actors::ClusterOf(placement, options.devices * options.num_nodes);
}

}  // namespace troupe
