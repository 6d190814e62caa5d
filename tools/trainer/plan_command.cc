#include "tools/trainer/plan_command.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/dtype_choice.h"
#include "actors/expected_memory.h"
#include "actors/job_spec.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "data/registry.h"
#include "nn/kernels/kernel_choices.h"
#include "pipeline/balance.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/step_simulation.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/options_reader.h"
#include "tools/trainer/progress.h"
#include "tools/trainer/spec_builder.h"

namespace troupe::tools {
namespace {

constexpr char kHelp[] =
    R"(trainer plan [--config=FILE] [options]

Prints what a run would do: the mesh, the stages that the model is cut into, the
order in which the ranks of a pipeline run them, and by estimate how long a step
takes, how long ranks stand still in it, and how much memory they need. Nothing
is trained.

Times are shares of a step: a stage takes as long as its arithmetic, a backward
twice as long as its forward, a transfer none. --measure trains a few steps on
one rank and makes milliseconds of them.

Options:
  --config=FILE            As of trainer train; so are the next two.
  --set section.key=value
  --ranks=N
  --measure                Times a step of one rank.
  --grid                   Prints the tables of the pipeline's ranks, which
                           mesh.schedule_file takes.
  --columns=N              Width of the drawn step: 100.
  --help                   This text.

For example, which schedule suits four stages of a small GPT:

  trainer plan --set model.kind=gpt_nano --set data.kind=text \
      --set mesh.pp=4 --set train.micro_batch_size=4 --set mesh.schedule=zb_v
)";

constexpr int kColumnsMin = 20, kColumnsMax = 10'000;

std::string StageRows(const pipeline::Plan& plan,
                      const pipeline::StepCosts& costs) {
  double all = 0;
  for (const pipeline::StageCosts& stage : costs.stages) all += stage.forward;
  std::string text =
      absl::StrFormat("%-6s %-5s %-24s %14s %11s %16s\n", "stage", "rank",
                      "from", "parameters", "arithmetic", "activations");
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const pipeline::StagePlan& stage = plan.stages[i];
    std::int64_t elems = 0;
    for (const std::int64_t each : stage.parameter_elems) elems += each;
    const double share = all > 0 ? costs.stages[i].forward / all : 0;
    absl::StrAppendFormat(
        &text, "%-6d %-5d %-24s %14s %10.1f%% %16s\n", i, stage.place.pp,
        i == 0 ? "the input" : plan.cuts[i - 1], FormatCount(elems),
        100 * share,
        base::FormatBytes(
            static_cast<std::uint64_t>(costs.stages[i].activation)));
  }
  return text;
}

std::string HeadOf(const TrainerConfig& config, const pipeline::Plan& plan) {
  const std::string schedule =
      !config.pipeline.schedule_file.empty()
          ? absl::StrCat("the schedule of ", config.pipeline.schedule_file)
          : absl::StrCat("schedule ", ScheduleName(config));
  const bool is_pipeline = plan.stages.size() > 1;
  return absl::StrCat(
      config.model.Name(), " (", FormatCount(plan.parameter_elems()),
      " parameters) on ", plan.mesh.size(),
      plan.mesh.size() == 1 ? " rank (" : " ranks (", plan.mesh.ToString(),
      "), ", is_pipeline ? schedule + ", " : "", "a step of ",
      plan.global_batch_size, " samples: ", plan.micro_batches,
      plan.micro_batches == 1 ? " micro-batch of " : " micro-batches of ",
      plan.micro_batch_size, " on each replica\n");
}

// `seconds`: that one rank takes for a micro-batch of the whole model.
std::string StepText(const pipeline::Plan& plan,
                     const pipeline::SimulatedStep& step,
                     const pipeline::StepCosts& costs,
                     std::optional<double> seconds, int columns) {
  double work = 0;  // of a micro-batch, all stages
  for (const pipeline::StageCosts& stage : costs.stages) {
    work += stage.forward + stage.inputs + stage.weights;
  }
  std::string text = absl::StrCat("\n", DrawStep(step, columns));
  const double alone = work * plan.micro_batches;
  absl::StrAppendFormat(
      &text,
      "\nbubble: %.1f%% of a step, in which a rank does not compute; a step "
      "takes %.2f of what one rank would take for it\n",
      100 * step.bubble, alone > 0 ? step.seconds / alone : 0);
  if (seconds) {
    absl::StrAppendFormat(
        &text, "a step takes about %.4g ms; one rank would take %.4g ms\n",
        1e3 * *seconds * step.seconds / std::max(work, 1e-300),
        1e3 * *seconds * plan.micro_batches);
  }
  absl::StrAppendFormat(
      &text,
      "activations of a rank: at most of %d micro-batches of a stage, %s\n",
      step.activations_max(),
      base::FormatBytes(static_cast<std::uint64_t>(step.memory_max())));
  return text;
}

absl::StatusOr<pipeline::Plan> PlanOf(const LoadedConfig& loaded,
                                      const actors::JobSpec& spec) {
  const data::SampleSpec& sample = spec.train->spec();
  const nn::DType input =
      nn::IsFloating(sample.input_dtype) ? spec.dtype : sample.input_dtype;
  absl::StatusOr<pipeline::Plan> plan = pipeline::MakePlan(
      spec.plan, spec.model, sample.input_shape, input, spec.device);
  if (!plan.ok()) return AtKeys(loaded, plan.status());
  return plan;
}

}  // namespace

std::string PlanHelp() { return kHelp; }

absl::StatusOr<PlanRequest> ParsePlan(
    const std::vector<std::string>& arguments) {
  PlanRequest request;
  OptionsReader reader("plan");
  reader.Text("--config=examples/glyphs/glyphs.toml", &request.config);
  reader.Texts("--set=mesh.pp=2", &request.sets);
  reader.Text("--ranks=2", &request.ranks);
  reader.Flag("--measure", &request.measure);
  reader.Flag("--grid", &request.grid);
  reader.Number("--columns=100", kColumnsMin, kColumnsMax, &request.columns);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  return request;
}

absl::Status ShowPlan(const LoadedConfig& loaded, const PlanRequest& request,
                      base::FileSystem& files,
                      const std::function<bool(absl::string_view)>& write) {
  data::DatasetOptions data = loaded.config.data;
  data.files = &files;
  const absl::StatusOr<data::DataSplits> splits = data::OpenDataset(data);
  if (!splits.ok()) return AtKeys(loaded, splits.status());
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          BuildSpec(loaded, *splits, files));
  spec.kernel_choices = std::make_shared<nn::KernelChoices>();
  if (spec.open_dtype.has_value()) {
    if (!request.measure) spec.open_dtype->measure = nullptr;
    TROUPE_ASSIGN_OR_RETURN(spec, actors::WithDType(spec, /*plan=*/nullptr));
  }
  TROUPE_ASSIGN_OR_RETURN(const pipeline::Plan plan, PlanOf(loaded, spec));
  std::vector<pipeline::StepTable> tables;
  for (const pipeline::RankPlan& rank : plan.ranks)
    tables.push_back(rank.train);
  TROUPE_ASSIGN_OR_RETURN(
      const pipeline::StepCosts costs,
      pipeline::EstimateCosts(
          spec.model, plan.cuts,
          {plan.stages[0].input, plan.stages[0].input_dtype}, plan.device));
  TROUPE_ASSIGN_OR_RETURN(
      const pipeline::SimulatedStep step,
      pipeline::SimulateStep(tables, plan.placement(), costs, plan.dispatch));
  TROUPE_ASSIGN_OR_RETURN(const actors::ExpectedMemory memory,
                          actors::ExpectMemory(spec, plan));
  std::optional<double> seconds;
  if (request.measure) {
    TROUPE_ASSIGN_OR_RETURN(seconds, actors::MeasureStepSeconds(spec));
  }
  std::string text =
      absl::StrCat(HeadOf(loaded.config, plan), "\n", StageRows(plan, costs));
  absl::StrAppend(&text, StepText(plan, step, costs, seconds, request.columns),
                  "memory expected: ", memory.ToString(), "\n");
  if (request.grid) {
    std::vector<pipeline::StepTable> computed;
    for (const pipeline::SimulatedRank& rank : step.ranks) {
      pipeline::StepTable table;
      for (const pipeline::SimulatedAction& at : rank.actions) {
        table.actions.push_back(at.action);
      }
      computed.push_back(std::move(table));
    }
    absl::StrAppend(&text, "\n", pipeline::ToGrid(computed));
  }
  write(text);
  return absl::OkStatus();
}

}  // namespace troupe::tools
