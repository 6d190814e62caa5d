#include "tools/trainer/commands/plan_command.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/planning/dtype_choice.h"
#include "actors/planning/measure_costs.h"
#include "actors/planning/mesh_choice.h"
#include "actors/planning/reduction_costs.h"
#include "actors/planning/step_prediction.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "data/registry.h"
#include "nn/kernels/kernel_choices.h"
#include "pipeline/cut_search.h"
#include "tools/trainer/commands/mesh_list.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/run/plan_text.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr char kPlanHelp[] =
    R"(trainer plan [--config=FILE] [options]

Prints what a run would do: the mesh, the stages that the model is cut into, the
order in which the ranks of a pipeline run them, and by prediction how long a
step takes, how long ranks stand still in it, how much memory they need, and
what of that does not fit. Nothing is trained.

Times are shares of a step: a stage takes as long as its arithmetic, a backward
twice as long as its forward, a transfer none. --measure times every layer for
half a second instead, and so does mesh.balance = "measured", which needs that
for its cuts; then reductions over replicas, gathers of ZeRO and sums of layers
over mesh.tp count, too.

--meshes lists the ways to lay out the run on as many ranks in place of that:
replicas, tensor parallelism and stages, schedules, sizes of micro-batches,
activations kept or recomputed, ZeRO, each with its predicted step, memory, and
bytes that a rank sends; and why others cannot be. It times every layer, and
sums between threads. mesh.auto = true takes the first of the list in a run.

Options:
  --config=FILE            As of trainer train; so are the next two.
  --set section.key=value
  --ranks=N
  --measure                Times every layer.
  --meshes                 Lists ways to lay out the run on its ranks.
  --memory=BYTES           The same as --set mesh.memory_limit=BYTES: what a
                           rank may need.
  --bandwidth=BYTES        The same as --set mesh.bandwidth=BYTES: what a rank
                           sends to others in a second, for --meshes and
                           --measure. 1.25e9 bytes are 10 Gbit/s.
  --grid                   Prints only the tables of the pipeline's ranks, as
                           a file that mesh.schedule_file takes.
  --columns=N              Width of the drawn step: 100.
  --help                   This text.

For example, which schedule suits four ranks of a small GPT, two parts each:

  trainer plan --set model.kind=gpt_nano --set data.kind=text \
      --set model.depth=8 --set mesh.pp=4 --set train.micro_batch_size=4 \
      --set mesh.schedule=zb_v

Which layout is the fastest of those that need at most 64 MiB a rank:

  trainer plan --set model.kind=gpt_nano --set data.kind=text \
      --ranks=4 --meshes --memory=64MiB
)";

constexpr int kColumnsMin = 20, kColumnsMax = 10'000;
constexpr double kBandwidthMin = 1000, kBandwidthMax = 1e15;

// A job without open choices, and the measured costs of its model if they were
// measured.
struct ClosedSpec {
  actors::JobSpec spec;
  std::optional<pipeline::ModelCosts> costs;
};

absl::StatusOr<ClosedSpec> Close(actors::JobSpec spec, const NoteFn& note,
                                 bool measure) {
  ClosedSpec closed;
  if (spec.open_mesh.has_value()) spec.note = note;
  if (spec.open_dtype.has_value()) {
    if (!measure) spec.open_dtype->measure = nullptr;
    TROUPE_ASSIGN_OR_RETURN(spec, actors::WithDType(spec, /*plan=*/nullptr));
  }
  if (spec.open_mesh.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(spec, actors::WithMesh(spec, /*plan=*/nullptr));
  }
  closed.spec = spec;
  closed.spec.open_pipeline.reset();
  if (measure || spec.open_pipeline.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(closed.costs, actors::MeasureCosts(closed.spec));
  }
  if (spec.open_pipeline.has_value()) {
    TROUPE_RETURN_IF_ERROR(
        spec.open_pipeline->set(*closed.costs, closed.spec.plan));
  }
  return closed;
}

int RunPlan(const std::vector<std::string>& arguments,
            const CommandContext& context) {
  const absl::StatusOr<PlanRequest> request = ParsePlan(arguments);
  if (!request.ok()) return Fail(context, request.status(), kExitUsage);
  std::vector<std::string> sets = request->sets;
  if (!request->memory.empty()) {
    sets.push_back(absl::StrCat("mesh.memory_limit=", request->memory));
  }
  if (request->bandwidth > 0) {
    sets.push_back(absl::StrFormat("mesh.bandwidth=%.17g", request->bandwidth));
  }
  const absl::StatusOr<ConfigSource> source =
      ParseConfigSource(request->config, sets, request->ranks);
  if (!source.ok()) return Fail(context, source.status(), kExitUsage);
  if (request->help) return Print(context, PlanHelp());
  return RunOnConfig(context, *source, [&](const LoadedConfig& loaded) {
    return ShowPlan(loaded, *request, *context.files, context.write,
                    NotesOf(context));
  });
}

}  // namespace

std::string PlanHelp() { return kPlanHelp; }

absl::StatusOr<PlanRequest> ParsePlan(
    const std::vector<std::string>& arguments) {
  PlanRequest request;
  OptionsReader reader("plan");
  reader.Path("--config=examples/glyphs/glyphs.toml", &request.config);
  reader.Texts("--set=mesh.pp=2", &request.sets);
  reader.Text("--ranks=2", &request.ranks);
  reader.Flag("--measure", &request.measure);
  reader.Flag("--grid", &request.grid);
  reader.Flag("--meshes", &request.meshes);
  reader.Text("--memory=2GiB", &request.memory);
  reader.Real("--bandwidth=1.25e9", kBandwidthMin, kBandwidthMax,
              &request.bandwidth);
  reader.Number("--columns=100", kColumnsMin, kColumnsMax, &request.columns);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  return request;
}

absl::Status ShowPlan(const LoadedConfig& loaded, const PlanRequest& request,
                      base::FileSystem& files,
                      const std::function<bool(absl::string_view)>& write,
                      const NoteFn& note) {
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenData(loaded, files, note));
  if (request.meshes) {
    return ShowMeshes(loaded, splits, files, write);
  }
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          BuildSpec(loaded, splits, files));
  spec.kernel_choices = std::make_shared<nn::KernelChoices>();
  TROUPE_ASSIGN_OR_RETURN(const ClosedSpec closed,
                          Close(std::move(spec), note, request.measure));
  // Estimated costs have no unit of time to count collectives in.
  std::optional<actors::ReductionCosts> reductions;
  if (closed.costs.has_value()) {
    reductions = actors::LinkCosts(closed.spec.plan.mesh.size(),
                                   loaded.config.pipeline.bandwidth);
  }
  const absl::StatusOr<actors::StepPrediction> step =
      actors::PredictStep(closed.spec, closed.costs ? &*closed.costs : nullptr,
                          reductions ? &*reductions : nullptr);
  if (!step.ok()) return AtKeys(loaded, step.status());
  if (request.grid) {
    write(GridText(*step));
    return absl::OkStatus();
  }
  PlanTextOptions options;
  options.measured = closed.costs.has_value();
  options.columns = request.columns;
  write(PlanText(loaded.config, *step, options));
  return absl::OkStatus();
}

Command PlanCommand() {
  return {"plan", "[--config=FILE] [options]",
          "stages, schedule, step and memory of a run that has not begun",
          PlanHelp, RunPlan};
}

}  // namespace troupe::tools
