#include "tools/trainer/run/plan_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/format_bytes.h"
#include "pipeline/ties.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {
namespace {

using actors::ExpectedMemory;
using actors::StepPrediction;
using pipeline::StageCosts;

std::string Bytes(double bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
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
      plan.global_batch_size % plan.mesh.dp() == 0 ? "" : "up to ",
      plan.micro_batch_size,
      plan.last_micro_batch_size() == plan.micro_batch_size
          ? ""
          : absl::StrCat(", the last of ", plan.last_micro_batch_size(), ","),
      " on each replica\n");
}

// Returns a line about what ranks along tp have; "" if there is one.
std::string PiecesText(const pipeline::Plan& plan) {
  if (plan.mesh.tp() == 1) return "";
  if (!plan.SplitsParameters()) {
    return absl::StrCat("mesh.tp = ", plan.mesh.tp(),
                        ": no layer of the model is split, so ranks along tp "
                        "are copies\n");
  }
  std::int64_t whole = 0, own = 0;
  for (const pipeline::StagePlan& stage : plan.stages) {
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      if (!stage.IsSplit(static_cast<int>(i))) continue;
      whole += stage.split_elems[i];
      own += stage.parameter_elems[i];
    }
  }
  return absl::StrCat("mesh.tp = ", plan.mesh.tp(), ": ", FormatCount(whole),
                      " of ", FormatCount(plan.parameter_elems()),
                      " parameters are split, ", FormatCount(own),
                      " on each rank along tp",
                      plan.sequence_parallel ? ", which shares tokens too" : "",
                      "; times leave out what these ranks send\n");
}

// Returns the rows of stages, with milliseconds of a micro-batch or shares of
// the model's arithmetic.
std::string StageRows(const StepPrediction& step, bool measured) {
  const pipeline::Plan& plan = step.plan;
  double all = 0;
  for (const StageCosts& stage : step.costs.stages) all += stage.forward;
  std::string text = absl::StrFormat("%-6s %-5s %-18s %12s", "stage", "rank",
                                     "from", "parameters");
  absl::StrAppend(
      &text, measured
                 ? absl::StrFormat(" %9s %9s %9s %9s %9s", "forward",
                                   "backward", "inputs", "weights", "update")
                 : absl::StrFormat(" %11s", "arithmetic"));
  absl::StrAppendFormat(&text, " %12s %12s\n", "activations", "receives");
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const pipeline::StagePlan& stage = plan.stages[i];
    const StageCosts& costs = step.costs.stages[i];
    std::int64_t elems = 0;
    for (const std::int64_t each : stage.parameter_elems) elems += each;
    absl::StrAppendFormat(&text, "%-6d %-5d %-18s %12s", i, stage.place.pp,
                          i == 0 ? "the input" : plan.cuts[i - 1],
                          FormatCount(elems));
    if (measured) {
      for (const double seconds :
           {costs.forward, costs.TimeOf(pipeline::ActionKind::kBackward),
            costs.inputs, costs.weights, costs.update}) {
        absl::StrAppendFormat(&text, " %6.4g ms", 1e3 * seconds);
      }
    } else {
      const double share = all > 0 ? costs.forward / all : 0;
      absl::StrAppendFormat(&text, " %10.1f%%", 100 * share);
    }
    absl::StrAppendFormat(&text, " %12s %12s\n", Bytes(costs.activation),
                          Bytes(static_cast<double>(stage.received_bytes())));
    for (const pipeline::SkipPlan& skip : stage.skips) {
      absl::StrAppend(&text, "       with skip connection ", skip.name, ", ",
                      skip.spec.ToString(), "\n");
    }
  }
  return text;
}

// Returns a line for each bucket that stages share: "wte.weight, 3.1K
// parameters: a copy in each of the stages 0, 3".
std::string TieRows(const pipeline::Plan& plan) {
  std::string text;
  for (const pipeline::Tie& tie : pipeline::TiesOf(plan.stages)) {
    const pipeline::TieMember& first = tie.members[0];
    const pipeline::StagePlan& stage = plan.stages[first.stage];
    const std::vector<int>& bucket = stage.buckets[first.bucket];
    std::int64_t elems = 0;
    for (const int i : bucket) elems += stage.parameter_elems[i];
    const std::string others =
        bucket.size() > 1 ? absl::StrCat(" and ", bucket.size() - 1, " more")
                          : "";
    absl::StrAppend(
        &text, tie.name, others, ", ", FormatCount(elems),
        " parameters: a copy in each of the stages ",
        absl::StrJoin(tie.members, ", ",
                      [](std::string* out, const pipeline::TieMember& member) {
                        absl::StrAppend(out, member.stage);
                      }),
        "\n");
  }
  return text;
}

// Returns the rows of ranks: their work in a step, and their memory.
std::string RankRows(const StepPrediction& step) {
  const pipeline::Placement placement = step.plan.placement();
  std::string text = absl::StrFormat(
      "\n%-5s %-12s %8s %12s %12s %12s %12s %12s\n", "rank", "stages", "works",
      "parameters", "gradients", "optimizer", "activations", "together");
  for (int pp = 0; pp < step.plan.mesh.pp(); ++pp) {
    const ExpectedMemory& memory = step.memory[pp];
    double busy = step.steady.step.ranks[pp].busy;
    const std::vector<int> stages = pipeline::StagesAt(placement, pp);
    for (const int stage : stages) busy += step.costs.stages[stage].update;
    const double part =
        step.steady.seconds > 0 ? busy / step.steady.seconds : 0;
    absl::StrAppendFormat(
        &text, "%-5d %-12s %7.1f%% %12s %12s %12s %12s %12s\n", pp,
        absl::StrJoin(stages, ","), 100 * part, Bytes(memory.parameters),
        Bytes(memory.gradients), Bytes(memory.optimizer),
        Bytes(memory.activations), Bytes(memory.total()));
  }
  return text;
}

std::string StepText(const StepPrediction& step,
                     const PlanTextOptions& options) {
  std::string text =
      absl::StrCat("\n", DrawStep(step.steady.step, options.columns));
  absl::StrAppendFormat(
      &text,
      "\nbubble: %.1f%% of a step, in which a rank does not compute; a step "
      "takes %.2f of what one rank would take for it\n",
      100 * step.steady.bubble, step.work > 0 ? step.seconds / step.work : 0);
  if (options.measured) {
    absl::StrAppendFormat(
        &text, "a step takes about %.4g ms; one rank would take %.4g ms\n",
        1e3 * step.seconds, 1e3 * step.work);
  }
  absl::StrAppendFormat(
      &text,
      "activations of a rank: at most of %d micro-batches of a stage, %s\n",
      step.steady.step.activations_max(), Bytes(step.steady.step.memory_max()));
  return text;
}

const ExpectedMemory& Fullest(const StepPrediction& step) {
  return *std::max_element(
      step.memory.begin(), step.memory.end(),
      [](const auto& a, const auto& b) { return a.total() < b.total(); });
}

double MachineBytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Returns a line for each rank (or one for all) that needs more memory than it
// has.
std::string Misfits(const TrainerConfig& config, const StepPrediction& step) {
  std::string text;
  const auto limit = static_cast<double>(config.pipeline.memory_limit);
  // Number of ranks with the same stages.
  const int copies = step.plan.mesh.size() / step.plan.mesh.pp();
  double all = 0;
  for (std::size_t pp = 0; pp < step.memory.size(); ++pp) {
    const double bytes = step.memory[pp].total();
    all += bytes * copies;
    if (limit == 0 || bytes <= limit) continue;
    absl::StrAppend(&text, "does not fit: rank ", pp, " of the pipeline needs ",
                    Bytes(bytes), ", ", Bytes(bytes - limit),
                    " more than mesh.memory_limit\n");
  }
  const bool is_here = config.job.device.is_host() && !config.job.cluster;
  if (is_here && all > MachineBytes()) {
    absl::StrAppend(&text, "does not fit: the ranks need ", Bytes(all),
                    " together, and this machine has ", Bytes(MachineBytes()),
                    "\n");
  }
  return text;
}

}  // namespace

std::string PlanText(const TrainerConfig& config, const StepPrediction& step,
                     const PlanTextOptions& options) {
  return absl::StrCat(HeadOf(config, step.plan), PiecesText(step.plan), "\n",
                      StageRows(step, options.measured), TieRows(step.plan),
                      RankRows(step), StepText(step, options),
                      "memory expected: ", Fullest(step).ToString(), "\n",
                      Misfits(config, step));
}

std::string GridText(const StepPrediction& step) {
  std::vector<pipeline::StepTable> tables;
  for (const pipeline::SimulatedRank& rank : step.steady.step.ranks) {
    pipeline::StepTable& table = tables.emplace_back();
    for (const pipeline::SimulatedAction& at : rank.actions) {
      table.actions.push_back(at.action);
    }
  }
  return pipeline::ToGrid(tables);
}

}  // namespace troupe::tools
